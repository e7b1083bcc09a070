"""Every file of tests/submissions/ gets the verdict that its first line asks for.

The first line of a file is::

    // expect: OUTCOME [; score LOW..HIGH | ; score EXACT] [; says "TEXT"]... ; why, in words

where OUTCOME is one of

* `full`                     every check passes: all points
* `fail CHECK[, CHECK...]`   exactly these checks fail, on one case or more; no other check fails, and one
                             that did not pass was skipped because of a check that failed
* `build STATUS`             the build ends in this status (`BuildStatus` in grader/records.py), no points

`score` bounds the points earned of 100; without it, a `fail` loses at least one. `says` is a text, in upper
or lower case, that the student must read in a finding that fails or in the message about the build. No
result needs an instructor: none of these files is the grader's fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader import course, devices, pipeline, submission
from grader.devices import Device
from grader.records import Assignment, Result

FOLDER = Path(__file__).parent / "submissions"
FILES = sorted(FOLDER.glob("*.cu"))
CHECKS = ("runs", "written", "finite", "close", "inputs_untouched", "memory", "deterministic", "workspace")


@dataclass(frozen=True)
class Expectation:
    """The first line of a submission, read."""

    outcome: str
    names: frozenset[str]
    low: float
    high: float
    says: tuple[str, ...]
    why: str


def read_expectation(first_line: str) -> Expectation:
    """Read a first line. Raises `ValueError` saying what is wrong with it."""
    match = re.fullmatch(r"// expect: (full|fail|build)( [\w, ]+)?; (.+)", first_line)
    if not match:
        raise ValueError(f"expected '// expect: full|fail CHECKS|build STATUS; ... why', got: {first_line}")
    outcome, names, rest = match[1], match[2] or "", match[3]
    low, high = {"full": (100.0, 100.0), "fail": (0.0, 99.0), "build": (0.0, 0.0)}[outcome]
    if score := re.match(r"score (\d+)(?:\.\.(\d+))?; ", rest):
        low, high = float(score[1]), float(score[2] or score[1])
        rest = rest[score.end() :]
    says = []
    while said := re.match(r'says "([^"]+)"; ', rest):
        says.append(said[1])
        rest = rest[said.end() :]
    if re.match(r"(score|says) ", rest) or not rest.endswith((".", "?")):
        raise ValueError(f"after the outcome: [score A..B;] [says ...;] and a sentence; got: {rest}")
    checks = frozenset(name.strip() for name in names.split(",")) if names.strip() else frozenset()
    if bool(checks) != (outcome != "full") or (outcome == "fail" and not checks <= set(CHECKS)):
        raise ValueError(f"'{names.strip()}' does not fit '{outcome}'")
    return Expectation(outcome, checks, low, high, tuple(says), rest)


def expectation_of(path: Path) -> Expectation:
    """Read the first line of a submission."""
    return read_expectation(path.read_text(encoding="utf-8").partition("\n")[0])


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return course.load(course.find("03_flash_attention"))


@pytest.fixture(scope="module")
def device() -> Device:
    return devices.pick("cpu")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that hang are caught after three seconds here: none of the others needs a tenth of it."""
    monkeypatch.setattr(pipeline, "KERNEL_SECONDS", 3.0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_submission_gets_the_verdict_that_its_first_line_asks_for(
    path: Path, assignment: Assignment, device: Device
) -> None:
    expected = expectation_of(path)
    result = pipeline.grade(assignment, submission.read(path), device)
    assert problems(expected, result) == []


def problems(expected: Expectation, result: Result) -> list[str]:
    """Say everything in which the result differs from what is expected."""
    found = [f"{name}: {text}" for name, text in _grader_faults(result)]
    failed = {finding.check for finding in result.findings if finding.status == "fail"}
    if expected.outcome == "build":
        if {result.build.status} != expected.names:
            found.append(f"the build is '{result.build.status}': {result.build.message}")
        if not failed <= {"compiles"}:
            found.append(f"failed beside the build: {sorted(failed - {'compiles'})}")
    else:
        if result.build.status != "ok":
            found.append(f"it does not build: {result.build.message}\n{result.build.log}")
        if failed != expected.names:
            found.append(f"failed: {_failures(result)}")
        found += _skips_without_a_reason(result)
    if not expected.low <= result.score.earned <= expected.high:
        found.append(f"earned {result.score.earned:g}, expected {expected.low:g} to {expected.high:g}")
    if not _is_needs_gpu(result) and result.score.assessed != result.score.total:
        found.append(f"only {result.score.assessed:g} of {result.score.total:g} points were assessed")
    words = _words(result).lower()
    found += [
        f"nowhere says '{text}'; it says: {words}" for text in expected.says if text.lower() not in words
    ]
    return found


def _grader_faults(result: Result) -> list[tuple[str, str]]:
    faults = [(finding.check, finding.summary) for finding in result.findings if finding.status == "error"]
    return [*faults, ("result", "needs an instructor")] if result.needs_instructor else faults


def _failures(result: Result) -> str:
    return "; ".join(
        f"{finding.check} {finding.case!r} {finding.summary[:160]}"
        for finding in result.findings
        if finding.status == "fail"
    )


def _skips_without_a_reason(result: Result) -> list[str]:
    """A check that was skipped names the failure that made it pointless."""
    return [
        f"{finding.check} {finding.case!r} skipped: {finding.summary}"
        for finding in result.findings
        if finding.status == "skip" and not finding.because and not _nothing_ran(result)
    ]


def _nothing_ran(result: Result) -> bool:
    return all(case.run_status != "ok" for case in result.cases)


def _is_needs_gpu(result: Result) -> bool:
    return result.build.status == "needs_gpu"


def _words(result: Result) -> str:
    said = [f"{finding.summary} {finding.hint}" for finding in result.findings if finding.status == "fail"]
    return " ".join([result.build.message, result.build.hint, *said])


def test_there_are_enough_right_and_wrong_submissions() -> None:
    outcomes = [
        read_expectation(path.read_text(encoding="utf-8").partition("\n")[0]).outcome for path in FILES
    ]
    assert outcomes.count("full") >= 14
    assert outcomes.count("fail") + outcomes.count("build") >= 30


def test_every_check_of_the_assignment_is_failed_by_some_submission(assignment: Assignment) -> None:
    named = set()
    for path in FILES:
        expected = expectation_of(path)
        named |= {"compiles"} if expected.outcome == "build" else expected.names
    assert {spec.check for spec in assignment.checks} <= named


@pytest.mark.parametrize(
    "line",
    [
        "// expect: full",
        "// expected: full; Fine.",
        "// expect: full close; Fine.",
        "// expect: fail; Wrong.",
        "// expect: fail nonsense; Wrong.",
        "// expect: fail close; says missing quotes; Wrong.",
        "// expect: fail close; no sentence",
    ],
)
def test_a_first_line_that_cannot_be_read_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"expected|after|does not fit"):
        read_expectation(line)
