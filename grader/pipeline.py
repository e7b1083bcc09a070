"""grade(): the only place where the stages meet.

    load -> build -> run -> check -> score          (then report, by the caller)

One way, one noun in and one noun out. Nothing here knows a device, a check or a report format by name.
"""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from grader import __version__, checks, course, inputs, numerics
from grader.checks import CaseSubject, Check, SubmissionSubject
from grader.checks.deterministic import DEFAULT_REPEATS
from grader.devices import Device
from grader.errors import GraderError
from grader.jobs import Call
from grader.numerics import Expected
from grader.records import (
    Assignment,
    AssignmentInfo,
    Build,
    BuildResult,
    Case,
    CaseResult,
    CheckSpec,
    Event,
    Finding,
    Result,
    Run,
    Status,
    Submission,
    SubmissionInfo,
    Verdict,
)
from grader.score import score

Progress = Callable[[str, int, int], None]
"""Called with the stage ("build", "run", "check"), how many steps of it are done, and how many there are."""

Prepared = tuple[Mapping[str, np.ndarray | None], Mapping[str, Expected]]
"""The inputs of a case by name, and what a correct kernel gives for each output."""

_PREPARED: dict[tuple[Path, str, str], Prepared] = {}
MAX_PREPARED = 200
CASE_SECONDS = 20.0
KERNEL_SECONDS = 5.0


def grade(
    assignment: Assignment,
    submission: Submission,
    device: Device,
    *,
    progress: Progress = lambda stage, done, total: None,
) -> Result:
    """Grade one submission on one device. The student's code cannot make this raise; a broken grader can.

    Works in a throw-away folder, which is gone when this returns or is interrupted.
    """
    clock = _Clock()
    with _work_folder() as folder:
        cases = [case for case in assignment.cases if not case.on or device.name in case.on]
        progress("build", 0, 1)
        with ThreadPoolExecutor(1) as pool:
            # The compiler is another process: meanwhile this one computes what is expected.
            building = pool.submit(device.build, assignment.entries, submission, folder / "build")
            with clock.measure("reference"):
                prepared = {case.name: _prepare(assignment, case) for case in cases}
            build = building.result()
        clock.seconds["build"] = build.duration
        progress("run", 0, len(cases))
        with clock.measure("run"):
            runs = _run(assignment, device, build, cases, prepared, folder / "run", progress)
        progress("check", 0, 1)
        with clock.measure("check"):
            subjects = [
                CaseSubject(assignment, course.entry_of(assignment, case), case, run, prepared[case.name][1])
                for case, run in zip(cases, runs, strict=False)
            ]
            findings = judge(assignment, build, subjects, device.name)
    return Result(
        assignment=AssignmentInfo(assignment.slug, assignment.title, assignment.version),
        submission=SubmissionInfo(submission.name, submission.sha256, len(submission.data), submission.text),
        device=device.info(),
        score=score(findings),
        needs_instructor=any(finding.status == "error" for finding in findings),
        build=_build_result(build),
        findings=findings,
        diagnoses=(),
        cases=tuple(_case_result(case, findings, runs) for case in assignment.cases),
        events=tuple(_events(runs)),
        versions=_versions(),
        timings=clock.finished(),
        graded_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def judge(
    assignment: Assignment, build: Build, subjects: Sequence[CaseSubject], device_name: str
) -> tuple[Finding, ...]:
    """Make every check of the manifest and count its points.

    A case's points are won or lost as one: they stand at the check that decided, and the checks after a
    failure are skipped, naming it. A submission-wide check earns its points only if at least one case that it
    examined is right, so that a kernel that does nothing earns nothing.
    """
    discovered = checks.discover()
    specs = {spec.check: spec for spec in assignment.checks}
    chosen = [check for check in discovered.values() if check.name in specs]
    findings: list[Finding] = []
    for check in chosen:
        if check.scope == "build":
            findings.append(_finding(check, specs[check.name], check.judge(build)))
    if build.status != "ok":
        return (*findings, *_not_built(assignment, chosen, specs, findings))
    gates = [check for check in chosen if check.scope == "case"]
    by_name = {subject.case.name: subject for subject in subjects}
    for case in assignment.cases:
        if subject := by_name.get(case.name):
            findings += _case_findings(gates, subject)
        else:
            where = " or ".join(case.on)
            verdict = Verdict("skip", f"graded on {where}; this run used {device_name}")
            findings.append(_case_finding(gates[-1], case, verdict, case.points, assessed=False))
    close = frozenset(
        finding.case
        for finding in findings
        if finding.case and finding.check == gates[-1].name and finding.status == "pass"
    )
    for check in chosen:
        if check.scope == "submission":
            spec = specs[check.name]
            examined = tuple(
                subject for subject in subjects if not spec.cases or subject.case.name in spec.cases
            )
            subject_ = SubmissionSubject(assignment, build, spec, examined, close)
            findings.append(_submission_finding(check, subject_))
    return tuple(findings)


def _case_findings(gates: Sequence[Check], subject: CaseSubject) -> Iterator[Finding]:
    """Yield one finding for each gate; the points stand at the first that does not pass, else at the last."""
    stopped: Check | None = None
    for gate in gates:
        if stopped is not None:
            verdict = Verdict("skip", f"pointless while '{stopped.name}' does not pass")
            yield _case_finding(gate, subject.case, verdict, 0.0, because=stopped.name)
            continue
        verdict = _with_cause(gate.judge(subject), subject.run)
        decides = verdict.status != "pass" or gate is gates[-1]
        yield _case_finding(
            gate,
            subject.case,
            verdict,
            subject.case.points if decides else 0.0,
            assessed=verdict.status in ("pass", "fail"),
        )
        if verdict.status != "pass":
            stopped = gate


def _with_cause(verdict: Verdict, run: Run) -> Verdict:
    """Let what the device saw explain a failure: a fact with a line outranks a general hint."""
    remedies = {
        "exited_before_barrier": "keep every thread alive until the last barrier; guard the store instead",
    }
    seen = next((event for event in run.events if event.severity == "warning" and event.where), None)
    if verdict.status != "fail" or verdict.line or seen is None or seen.where is None:
        return verdict
    summary = f"{verdict.summary.rstrip('.')}. At line {seen.where.line}, {seen.message}"
    hint = remedies.get(seen.kind, verdict.hint)
    return msgspec.structs.replace(verdict, summary=summary, hint=hint, line=seen.where.line)


def _case_finding(
    check: Check, case: Case, verdict: Verdict, points: float, *, assessed: bool = True, because: str = ""
) -> Finding:
    return Finding(
        check=check.name,
        title=check.title,
        case=case.name,
        status=verdict.status,
        points=points if verdict.status == "pass" else 0.0,
        max_points=points,
        summary=verdict.summary,
        hint=verdict.hint,
        assessed=assessed,
        because=because,
        line=verdict.line,
        comparisons=verdict.comparisons,
    )


def _submission_finding(check: Check, subject: SubmissionSubject) -> Finding:
    verdict: Verdict = check.judge(subject)
    right = any(examined.case.name in subject.close for examined in subject.examined)
    if verdict.status == "pass" and not right and subject.spec.points:
        verdict = Verdict("skip", "earns its points once an output of these cases is right")
        return _finding(check, subject.spec, verdict, because="close")
    # A check that found nothing to look at because no case ran is lost with those cases.
    because = "runs" if verdict.status == "skip" and subject.examined else ""
    return _finding(check, subject.spec, verdict, because=because)


def _finding(check: Check, spec: CheckSpec, verdict: Verdict, *, because: str = "") -> Finding:
    return Finding(
        check=check.name,
        title=check.title,
        case="",
        status=verdict.status,
        points=spec.points if verdict.status == "pass" else 0.0,
        max_points=spec.points,
        summary=verdict.summary,
        hint=verdict.hint or (spec.hint if verdict.status == "fail" else ""),
        assessed=verdict.status in ("pass", "fail") or bool(because),
        because=because,
        line=verdict.line,
        comparisons=verdict.comparisons,
    )


def _not_built(
    assignment: Assignment,
    chosen: Sequence[Check],
    specs: Mapping[str, CheckSpec],
    made: Sequence[Finding],
) -> Iterator[Finding]:
    """Yield what is left when nothing could be built: all points, lost or not assessed."""
    failed = any(finding.status == "fail" for finding in made)
    because = "compiles" if failed else ""
    verdict = Verdict("skip", "pointless while 'compiles' does not pass" if failed else "nothing was built")
    gates = [check for check in chosen if check.scope == "case"]
    for case in assignment.cases:
        yield _case_finding(gates[-1], case, verdict, case.points, assessed=failed, because=because)
    for check in chosen:
        if check.scope == "submission":
            yield _finding(check, specs[check.name], verdict, because=because)


def _prepare(assignment: Assignment, case: Case) -> Prepared:
    """Make the inputs of a case and compute what a correct kernel gives; once for a whole class."""
    address = (assignment.folder, assignment.version, case.name)
    if address not in _PREPARED:
        if len(_PREPARED) >= MAX_PREPARED:
            _PREPARED.clear()
        _PREPARED[address] = _made(assignment, case)
    return _PREPARED[address]


def _made(assignment: Assignment, case: Case) -> Prepared:
    entry = course.entry_of(assignment, case)
    arrays = inputs.make(entry.parameters, case.dims, case.inputs, case.seed)
    values = {name: _as_reference_input(array) for name, array in arrays.items()}
    reference = course.reference_of(assignment, entry)
    try:
        return arrays, reference(**values, **course.scalars_of(entry, case))
    except Exception as error:  # whatever a course author's code may raise
        raise GraderError(
            f'{assignment.folder / "reference.py"}: {entry.reference}() fails in case "{case.name}":'
            f" {type(error).__name__}: {error}",
            "the course author has to mend the reference",
        ) from error


def _as_reference_input(array: np.ndarray | None) -> np.ndarray | None:
    """Return what the student's function gets, in float64; integers, masks and null pointers as they are."""
    if array is None or array.dtype in (np.int32, np.uint8):
        return array
    return numerics.as_float64(array)


def _run(
    assignment: Assignment,
    device: Device,
    build: Build,
    cases: Sequence[Case],
    prepared: Mapping[str, Prepared],
    folder: Path,
    progress: Progress,
) -> list[Run]:
    if build.status != "ok":
        return []
    calls = []
    for case in cases:
        entry = course.entry_of(assignment, case)
        calls.append(
            Call(
                case=case,
                entry=entry,
                entry_index=assignment.entries.index(entry),
                arrays=prepared[case.name][0],
                repeats=_repeats(assignment, case),
                seconds=CASE_SECONDS,
                kernel_seconds=KERNEL_SECONDS,
            )
        )
    return device.run(build, calls, folder, lambda done: progress("run", done, len(calls)))


def _repeats(assignment: Assignment, case: Case) -> int:
    """Return how often the case is called: more than once only where `deterministic` looks at it."""
    for spec in assignment.checks:
        if spec.check == "deterministic" and (not spec.cases or case.name in spec.cases):
            return int(spec.options.get("repeats", DEFAULT_REPEATS))
    return 1


def _case_result(case: Case, findings: Sequence[Finding], runs: Sequence[Run]) -> CaseResult:
    own = [finding for finding in findings if finding.case == case.name]
    run = next((run for run in runs if run.case == case.name), None)
    return CaseResult(
        name=case.name,
        entry=case.entry,
        dims=case.dims,
        inputs=case.inputs
        if isinstance(case.inputs, str)
        else ", ".join(f"{name}: {kind}" for name, kind in case.inputs.items()),
        seed=case.seed,
        hidden=case.hidden,
        points=sum(finding.points for finding in own),
        max_points=sum(finding.max_points for finding in own),
        status=_worst([finding.status for finding in own if not finding.because]),
        run_status=run.status if run else "not_run",
        duration=run.duration if run else 0.0,
        launches=run.launches if run else (),
        peak_bytes=run.peak_bytes if run else 0,
        stdout=run.stdout if run else "",
        stderr=run.stderr if run else "",
    )


def _worst(statuses: Sequence[Status]) -> Status:
    order: tuple[Status, ...] = ("error", "fail", "skip", "pass")
    return next((status for status in order if status in statuses), "skip")


def _events(runs: Sequence[Run]) -> Iterator[Event]:
    for run in runs:
        for event in run.events:
            yield msgspec.structs.replace(event, case=run.case)


def _build_result(build: Build) -> BuildResult:
    return BuildResult(
        status=build.status,
        message=build.message,
        hint=build.hint,
        messages=build.messages,
        log=build.log,
        duration=build.duration,
        cached=build.cached,
        compiler=build.compiler,
        resources=build.resources,
    )


def _versions() -> dict[str, str]:
    return {
        "flashgrade": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


@contextmanager
def _work_folder() -> Iterator[Path]:
    """Make a private folder and remove it whatever happens, Ctrl-C included."""
    folder = Path(tempfile.mkdtemp(prefix="flashgrade-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Clock:
    """Wall-clock seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = time.perf_counter() - started

    def finished(self) -> dict[str, float]:
        total = time.perf_counter() - self._started
        return {name: round(value, 4) for name, value in {**self.seconds, "total": total}.items()}
