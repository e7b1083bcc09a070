"""For course authors: the skeleton that students get, generated from the annotated solution.

The annotations, each on a line of its own::

    // TODO(2): update the running maximum and rescale (about 4 lines)
    // BEGIN SOLUTION
    ...                                   removed
    // SKELETON: return;                  kept as `return;`: what the skeleton has in this place
    // END SOLUTION
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.errors import GraderError

_BEGIN = re.compile(r"^\s*// BEGIN SOLUTION\s*$")
_END = re.compile(r"^\s*// END SOLUTION\s*$")
_KEPT = re.compile(r"^(?P<indent>\s*)// SKELETON:\s?(?P<code>.*)$")
_TODO = re.compile(r"// TODO\((?P<number>\d+)\): .*\(about (?P<lines>\d+) lines?\)")


def skeleton(solution: str, name: str = "the solution") -> str:
    """Return the skeleton of an annotated solution.

    Raises `GraderError` for a block that is not closed, not opened, nested, or without its numbered TODO with
    a line budget just above it.
    """
    kept: list[str] = []
    opened = 0
    for number, line in enumerate(solution.splitlines(), start=1):
        if _BEGIN.match(line):
            if opened:
                raise GraderError(f"{name}:{number}: a solution block inside the one of line {opened}")
            _require_todo(kept, name, number)
            opened = number
        elif _END.match(line):
            if not opened:
                raise GraderError(f"{name}:{number}: END SOLUTION without BEGIN SOLUTION")
            opened = 0
        elif not opened:
            kept.append(line)
        elif match := _KEPT.match(line):
            kept.append((match["indent"] + match["code"]).rstrip())
    if opened:
        raise GraderError(f"{name}:{opened}: BEGIN SOLUTION without END SOLUTION")
    return "\n".join(kept) + "\n"


def todos(text: str) -> dict[int, int]:
    """Return the line budget of each numbered TODO in `text`.

    Raises `GraderError` when the numbers are not 1, 2, 3 ... in their order.
    """
    found = [(int(match["number"]), int(match["lines"])) for match in _TODO.finditer(text)]
    numbers = [number for number, _ in found]
    if numbers != list(range(1, len(numbers) + 1)):
        raise GraderError(f"the TODOs are numbered {numbers}; expected 1, 2, 3 ... in the order of the file")
    return dict(found)


def release(assignment_folder: Path, solutions: Path, *, check_only: bool = False) -> tuple[Path, bool]:
    """Write the skeleton of one assignment; return its path and whether it changed.

    With `check_only` nothing is written, so that a test can keep solution and skeleton in step.
    """
    files = sorted((solutions / assignment_folder.name).glob("*.cu"))
    if len(files) != 1:
        raise GraderError(
            f"{solutions / assignment_folder.name}: expected one .cu file, the annotated solution;"
            f" found {len(files)}"
        )
    source = files[0].read_text(encoding="utf-8")
    text = skeleton(source, files[0].name)
    todos(text)
    target = assignment_folder / files[0].name
    changed = not target.is_file() or target.read_text(encoding="utf-8") != text
    if changed and not check_only:
        target.write_text(text, encoding="utf-8")
    return target, changed


def _require_todo(kept: list[str], name: str, number: int) -> None:
    """The lines just above a block are a comment with a numbered TODO and its budget."""
    comment = []
    for line in reversed(kept):
        if not line.strip().startswith("//"):
            break
        comment.append(line)
    if not any(_TODO.search(line) for line in comment):
        raise GraderError(
            f"{name}:{number}: no '// TODO(n): what to do (about k lines)' just above this solution block"
        )
