"""The command line. Thin: each command loads what it needs, calls one function, and shows the outcome."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from grader.errors import GraderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from grader.pipeline import Progress
    from grader.records import Assignment, Result

app = typer.Typer(
    name="grader",
    help="Grade CUDA FlashAttention assignments, on any machine with a C++ compiler: no GPU is needed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXIT_CODES = (
    "Exit codes: 0 all assessed checks pass, 1 the submission falls short, 2 wrong usage, 3 grader fault."
)


INTERRUPTED = 130


def main() -> None:
    """Run the command line; expected failures are one line, never a traceback."""
    # The references are computed while the compiler runs: a second BLAS thread would only take its core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except GraderError as error:
        _say_error(error)
        sys.exit(error.exit_code)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # what typer makes of Ctrl-C
            print("\nInterrupted; no report was written.", file=sys.stderr)  # noqa: T201
        raise
    except BrokenPipeError:
        # The reader of our output went away (`grader list | head`): nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.command("list")
def list_() -> None:
    """List the assignments of the course."""
    from rich.table import Table

    from grader import course

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Assignment", "Title", "Cases", "Points"):
        table.add_column(heading, justify="right" if heading in ("Cases", "Points") else "left")
    for slug in course.slugs():
        assignment = course.load(course.find(slug))
        table.add_row(slug, assignment.title, str(len(assignment.cases)), f"{_points(assignment):g}")
    _console().print(table)


@app.command()
def start(
    assignment: Annotated[str, typer.Argument(help="The assignment, for example 03_flash_attention.")],
    folder: Annotated[
        Optional[Path],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Argument(help="Where to put it; a new folder of the assignment's name when left out."),
    ] = None,
) -> None:
    """Copy an assignment's skeleton and its README to work on."""
    from grader import course

    source = course.find(assignment)
    loaded = course.load(source)
    target = folder or Path(source.name)
    for name in (loaded.file, "README.md"):
        if (target / name).exists():
            raise UsageError(f"{target / name} exists already", "name another folder; nothing was changed")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in (loaded.file, "README.md"):
            (target / name).write_bytes((source / name).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot write to {target}: {error.strerror}") from None
    _console().print(
        f"Fill the TODOs of {target / loaded.file} (its README.md explains each), then run\n"
        f"  grader grade {target / loaded.file}",
        highlight=False,
        soft_wrap=True,
    )


@app.command(epilog=EXIT_CODES)
def grade(
    file: Annotated[Path, typer.Argument(help="Your .cu file.", show_default=False)],
    assignment: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--assignment", "-a", help="The assignment; found from the folder or the file when left out."
        ),
    ] = None,
    on: Annotated[str, typer.Option(help="Where to run: auto or cpu.")] = "auto",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write report.html and result.json to this folder."),
    ] = None,
    json: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Write the result as JSON to this file, or to standard output with -."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Grade again whenever the file is saved.")] = False,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also grade the hidden cases (instructors).")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every check of every case.")] = False,
) -> None:
    """Grade one submission and explain the outcome."""
    _require_writable(out, json)
    if not watch:
        raise typer.Exit(_grade_once(file, assignment, on, out, json, hidden, verbose))
    code = 0
    try:
        for _ in _saves(file):
            try:
                code = _grade_once(file, assignment, on, out, json, hidden, verbose)
            except GraderError as error:
                _say_error(error)
                code = error.exit_code
            _console(stderr=True).print(f"\nWatching {file}; Ctrl-C ends.", style="dim")
    except KeyboardInterrupt:
        raise typer.Exit(code) from None


@app.command()
def release(
    assignments: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="The assignments; all when left out."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if a skeleton is stale.")
    ] = False,
) -> None:
    """Write the skeletons that students get, from the annotated solutions (instructors)."""
    from grader import authoring, course

    stale = False
    for slug in assignments or course.slugs():
        folder = course.find(slug)
        solutions = folder.parent.parent / "solutions"
        if not (solutions / folder.name).is_dir():
            raise UsageError(
                f"no solution of {folder.name}: {solutions / folder.name} is missing",
                "releases are made in a checkout that has the instructors' solutions/ folder",
            )
        path, changed = authoring.release(folder, solutions, check_only=check)
        stale |= changed
        word = ("stale" if check else "written") if changed else "up to date"
        _console().print(f"{path}: {word}", highlight=False, soft_wrap=True)
    if check and stale:
        raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Tell what this machine can do, and what to install for the rest."""
    from grader import doctor as examination

    findings = examination.examine()
    examination.show(findings, _console())
    raise typer.Exit(0 if examination.can_grade(findings) else 3)


def _grade_once(
    file: Path,
    slug: str | None,
    on: str,
    out: Path | None,
    json: str | None,
    hidden: bool,
    verbose: bool,
) -> int:
    """Grade, write what was asked for, print the summary; return the exit code."""
    from grader import course, devices, pipeline, report, submission
    from grader.score import exit_code

    handed_in = submission.read(file)
    folder = course.find(slug) if slug else course.guess(handed_in.path, handed_in.text)
    assignment = course.load(folder, hidden=hidden)
    device = devices.pick(on)
    with _progress() as progress:
        result = pipeline.grade(assignment, handed_in, device, progress=progress)
    written = _write(result, out, json, hidden)
    if json == "-":
        sys.stdout.buffer.write(report.to_json(result))
    else:
        console = _console()
        report.print_result(result, console, verbose=verbose)
        for path in written:
            console.print(f"{path.stem.capitalize()}: {path}", highlight=False, soft_wrap=True)
    return exit_code(result.findings)


def _write(result: Result, out: Path | None, json: str | None, hidden: bool) -> list[Path]:
    from grader import report

    written = []
    if out:
        page = report.to_html(result, audience="instructor" if hidden else "student").encode()
        for name, data in (("result.json", report.to_json(result)), ("report.html", page)):
            _write_whole(out / name, data)
            written.append(out / name)
    if json and json != "-":
        _write_whole(Path(json), report.to_json(result))
        written.append(Path(json))
    return written


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)  # mkstemp's 0600 would hide a report on a shared folder
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", "the grading itself was complete"
        ) from None


def _require_writable(out: Path | None, json: str | None) -> None:
    """Find out before the work, not after it, that its outcome cannot be written."""
    folders = [out] if out else []
    if json and json != "-":
        if Path(json).is_dir():
            raise UsageError(f"--json {json} is a folder", "name a file in it")
        folders.append(Path(json).parent)
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise UsageError(f"cannot write to {folder}: {error.strerror}", "name another folder") from None


def _saves(file: Path) -> Iterator[None]:
    """Yield at once, and again after each change of the file; half a second of quiet counts as saved."""
    seen: object = object()
    while True:
        state = _state(file)
        if state != seen and state is not None:
            seen = state
            yield
        time.sleep(0.25)


def _state(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show what is going on, on a terminal only; yields the callback for the pipeline."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield lambda stage, done, total: None
        return
    words = {"build": "compiling", "run": "running the cases", "check": "comparing with the reference"}
    with console.status("reading") as status:
        started = time.perf_counter()

        def show(stage: str, done: int, total: int) -> None:
            count = f" {done}/{total}" if total > 1 else ""
            status.update(
                f"{words.get(stage, stage)}{count}  [dim]{time.perf_counter() - started:.1f} s[/dim]"
            )

        yield show


def _points(assignment: Assignment) -> float:
    return sum(case.points for case in assignment.cases) + sum(check.points for check in assignment.checks)


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def _say_error(error: GraderError) -> None:
    """One line for what is wrong; one more for what to do about it."""
    from rich.text import Text

    console = _console(stderr=True)
    clean = "".join(c if c.isprintable() else "?" for c in error.message.replace("\n", " "))
    console.print(Text.assemble(("Error: ", "bold red"), clean), soft_wrap=True, highlight=False)
    if error.hint:
        console.print(Text(f"       {error.hint}"), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
