"""What a report says, decided once for every rendering: the root problem, the groups, the tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from grader.records import (
    BuildResult,
    CaseResult,
    Comparison,
    Diagnosis,
    Event,
    Finding,
    Result,
    Status,
)
from grader.report import words

Audience = Literal["student", "instructor"]

HIDDEN_NOTE = "A hidden case: your instructor can see the details."

# Checks whose failure comes from what a device saw, not from a comparison: they outrank every guess.
_SEEN = ("compiles", "runs", "barriers", "memory", "races", "initialised")
_COMPARED = ("written", "finite", "close", "inputs_untouched", "deterministic", "workspace")


# What is wrong when a check fails and nothing more is known.
_WRONG = {
    "compiles": "The file cannot be built",
    "runs": "The kernel does not run to its end",
    "written": "Part of the output is never written",
    "finite": "The output holds NaN or infinite values",
    "close": "The output is outside the bound",
    "inputs_untouched": "The inputs were changed",
    "deterministic": "The output depends on the order of threads or blocks",
    "workspace": "The kernel needs too much extra memory",
    "memory": "Memory is used that is not the kernel's own",
    "races": "Two threads race for one address",
    "initialised": "Memory is read that nobody wrote",
    "barriers": "Not all threads reach a barrier",
    "speed": "The kernel is too slow",
}


# --- who may see what --------------------------------------------------------------------------------


def for_audience(result: Result, audience: Audience) -> Result:
    """Return the result as `audience` may see it: a student learns a hidden case's name and points only.

    Inputs, sizes, outputs, expected values, events and printed text of hidden cases are withheld, and so is
    the evidence of a diagnosis that rests on one.
    """
    hidden = {case.name for case in result.cases if case.hidden}
    if audience == "instructor" or not hidden:
        return result
    return replace(
        result,
        findings=tuple(_withheld(f) if f.case in hidden else f for f in result.findings),
        cases=tuple(_withheld_case(case) if case.hidden else case for case in result.cases),
        diagnoses=tuple(replace(d, evidence="") if hidden & {*d.cases} else d for d in result.diagnoses),
        events=tuple(event for event in result.events if event.case not in hidden),
    )


def _withheld(finding: Finding) -> Finding:
    summary = finding.summary if finding.status == "skip" else HIDDEN_NOTE
    return replace(finding, summary=summary, hint="", line=0, comparisons=())


def _withheld_case(case: CaseResult) -> CaseResult:
    return replace(
        case, dims={}, inputs="", seed=0, duration=0.0, launches=(), peak_bytes=0, stdout="", stderr=""
    )


# --- the verdict as a whole --------------------------------------------------------------------------


@dataclass(frozen=True)
class NotAssessed:
    """Points that this run could not judge, and why."""

    what: str
    points: float
    why: str


@dataclass(frozen=True)
class Headline:
    """The first thing to read. `status` is the result's own: error before fail before skip before pass."""

    status: Status
    score: str
    verdict: str
    not_assessed: tuple[NotAssessed, ...]


def headline(result: Result) -> Headline:
    """Return the score in words, the verdict, and what was not assessed with the reason."""
    score = result.score
    unassessed = not_assessed(result)
    status: Status
    if result.needs_instructor:
        status, verdict = "error", "The grader itself failed. This needs an instructor; it costs you nothing."
    elif any(finding.status == "fail" for finding in result.findings):
        status, verdict = "fail", ""
    elif not score.assessed and score.total:
        status, verdict = "skip", "This device cannot run the file; that costs you nothing."
    else:
        status, verdict = "pass", "Everything that was assessed here passes."
    text = f"{words.number(score.earned)} of {words.count(score.assessed, 'point')}"
    if score.total and not score.assessed:
        text = "Nothing assessed"
    return Headline(status, text, verdict, unassessed)


def not_assessed(result: Result) -> tuple[NotAssessed, ...]:
    """Return the points that count neither for nor against, grouped by check and reason."""
    points: dict[tuple[str, str], float] = {}
    for finding in result.findings:
        if not finding.assessed and finding.max_points:
            why = finding.summary or (f"because of {finding.because}" if finding.because else "")
            key = finding.check, why
            points[key] = points.get(key, 0.0) + finding.max_points
    return tuple(NotAssessed(check, amount, why) for (check, why), amount in points.items())


# --- groups of failures, and the one to mend first ----------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One cause: the finding that shows it best, its diagnosis if there is one, and where else it shows."""

    finding: Finding
    case: CaseResult | None
    diagnosis: Diagnosis | None
    event: Event | None
    line: int
    cause: str
    evidence: str
    hint: str
    also: tuple[str, ...]  # the names of further cases that fail alike
    lost: float  # points, over all of them

    @property
    def title(self) -> str:
        """The problem as a headline: its cause, or what is wrong when no cause is known."""
        return self.cause or _WRONG.get(self.finding.check) or f"{self.finding.check} fails"

    @property
    def comparison(self) -> Comparison | None:
        """The first comparison that is not inside the bound."""
        return next((c for c in self.finding.comparisons if c.outside), None)


def problems(result: Result) -> tuple[Problem, ...]:
    """Return the failures, those alike as one, the one to mend first at the front.

    Errors of the grader are not among them: a student cannot mend those.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in result.findings:
        if finding.status == "fail" and not finding.because:
            groups.setdefault(_likeness(finding, result.diagnoses), []).append(finding)
    found = [_problem(result, group) for group in groups.values()]
    return tuple(sorted(found, key=lambda problem: _urgency(problem, result.diagnoses)))


def diagnosis_of(finding: Finding, diagnoses: Iterable[Diagnosis]) -> Diagnosis | None:
    """Return the first diagnosis that explains a failing finding."""
    for diagnosis in diagnoses:
        if (
            finding.case in diagnosis.cases
            if finding.case
            else finding.line and finding.line == diagnosis.line
        ):
            return diagnosis
    return None


def _likeness(finding: Finding, diagnoses: tuple[Diagnosis, ...]) -> tuple[str, ...]:
    diagnosis = diagnosis_of(finding, diagnoses)
    if diagnosis:
        return finding.check, "diagnosis", diagnosis.cause
    # Alike but for the figures: "96 of 7232 elements are outside" and "16 of 1088 elements are outside".
    return (
        finding.check,
        str(finding.line),
        re.sub(r"0x[0-9a-f]+|-?[\d.]+(e[+-]?\d+)?|NaN|inf", "#", finding.summary),
    )


def _problem(result: Result, group: list[Finding]) -> Problem:
    cases = {case.name: case for case in result.cases}
    finding = min(group, key=lambda finding: _unclear(finding, cases.get(finding.case)))
    diagnosis = diagnosis_of(finding, result.diagnoses)
    event = _event_of(finding, result.events)
    line = (diagnosis.line if diagnosis else 0) or finding.line or _event_line(event)
    if finding.check == "compiles" and not line:
        line = first_error_line(result.build)
    return Problem(
        finding=finding,
        case=cases.get(finding.case),
        diagnosis=diagnosis,
        event=event,
        line=line,
        cause=diagnosis.title if diagnosis else "",
        evidence=diagnosis.evidence if diagnosis else "",
        hint=(diagnosis.hint if diagnosis else "") or finding.hint,
        also=tuple(other.case for other in group if other is not finding and other.case),
        lost=sum(other.max_points - other.points for other in group if other.assessed),
    )


def _unclear(finding: Finding, case: CaseResult | None) -> tuple[bool, bool, bool, float]:
    """Order findings by how well they teach: visible, partly right, no dimension of 1, small."""
    if case is None:
        return False, False, False, 0.0
    all_wrong = any(c.outside == c.elements for c in finding.comparisons)
    return case.hidden, all_wrong, 1 in case.dims.values(), math.prod(case.dims.values())


def _event_of(finding: Finding, events: tuple[Event, ...]) -> Event | None:
    """Return the error event that belongs to a failing finding: same case, same line where both have one."""
    if finding.check not in _SEEN:
        return None
    errors = [event for event in events if event.severity == "error"]
    same_case = [e for e in errors if not finding.case or e.case in ("", finding.case)]
    same_line = [e for e in same_case if finding.line and _event_line(e) == finding.line]
    return next(iter(same_line or ([] if finding.line else same_case)), None)


def _event_line(event: Event | None) -> int:
    return event.where.line if event and event.where else 0


def _urgency(problem: Problem, diagnoses: tuple[Diagnosis, ...]) -> tuple[int, int, int, float]:
    check = problem.finding.check
    hidden = bool(problem.case and problem.case.hidden)
    if problem.diagnosis:
        return hidden, 1, diagnoses.index(problem.diagnosis), -problem.lost
    if check in _SEEN:
        return hidden, 0, _SEEN.index(check), -problem.lost
    order = _COMPARED.index(check) if check in _COMPARED else len(_COMPARED)
    return hidden, 2, order, -problem.lost


def first_error_line(build: BuildResult) -> int:
    """Return the student's line of the compiler's first error, 0 when it has none."""
    return next((m.line for m in build.messages if m.severity == "error" and m.line), 0)


# --- tables -------------------------------------------------------------------------------------------


@dataclass
class CheckRow:
    """One check over all its cases."""

    check: str
    title: str
    status: Status = "pass"
    counts: dict[Status, int] = field(default_factory=lambda: {"pass": 0, "fail": 0, "skip": 0, "error": 0})
    points: float = 0.0
    max_points: float = 0.0
    assessed: bool = True
    why: str = ""  # why it was skipped or what the grader did wrong

    @property
    def cases(self) -> str:
        """How many of its cases pass: "13 of 21"; empty for a check of the submission as a whole."""
        total = sum(self.counts.values())
        return f"{self.counts['pass']} of {total}" if total else ""


def check_rows(result: Result) -> tuple[CheckRow, ...]:
    """Return a row for each check, in the order in which they were made."""
    rows: dict[str, CheckRow] = {}
    statuses: dict[str, set[Status]] = {}
    for finding in result.findings:
        row = rows.setdefault(finding.check, CheckRow(finding.check, finding.title))
        statuses.setdefault(finding.check, set()).add(finding.status)
        if finding.case:
            row.counts[finding.status] += 1
        if finding.assessed:
            row.points += finding.points
        row.max_points += finding.max_points
        row.assessed = row.assessed and (finding.assessed or not finding.max_points)
        if finding.status in ("skip", "error") and not row.why:
            row.why = finding.summary
    for check, row in rows.items():
        row.status = worst(statuses[check])
    return tuple(rows.values())


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status that a reader must hear of: error, fail, then pass; skip only when all are."""
    seen = set(statuses)
    order: tuple[Status, ...] = ("error", "fail", "pass", "skip")
    return next((status for status in order if status in seen), "skip")


@dataclass(frozen=True)
class CaseRow:
    """One case with the finding that decided it, and the comparison to show for it."""

    case: CaseResult
    finding: Finding | None
    comparisons: tuple[Comparison, ...]
    diagnosis: Diagnosis | None

    @property
    def used(self) -> float | None:
        """The worst share of the bound over the outputs; None when there is none or it is not finite."""
        shares = [comparison.used for comparison in self.comparisons]
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None


def case_rows(result: Result) -> tuple[CaseRow, ...]:
    """Return a row for each case, in the assignment's order."""
    by_case: dict[str, list[Finding]] = {}
    for finding in result.findings:
        by_case.setdefault(finding.case, []).append(finding)
    rows = []
    for case in result.cases:
        findings = by_case.get(case.name, [])
        decided = _decided(findings)
        shown = next((f.comparisons for f in (decided, *reversed(findings)) if f and f.comparisons), ())
        failed = decided is not None and decided.status == "fail"
        diagnosis = diagnosis_of(decided, result.diagnoses) if decided and failed else None
        rows.append(CaseRow(case, decided, shown, diagnosis))
    return tuple(rows)


def _decided(findings: list[Finding]) -> Finding | None:
    for status in ("error", "fail"):
        for finding in findings:
            if finding.status == status:
                return finding
    worth = [finding for finding in findings if finding.max_points and finding.status == "pass"]
    skipped = [finding for finding in findings if finding.status == "skip"]
    last = worth or skipped or findings
    return last[-1] if last else None


def shown_comparison(result: Result) -> tuple[CaseRow, Comparison] | None:
    """Return the comparison whose first row a terminal shows: the root problem's, else the largest case's."""
    rows = [row for row in case_rows(result) if row.comparisons]
    for problem in problems(result)[:1]:
        for row in rows:
            if problem.comparison and row.case.name == problem.finding.case:
                return row, problem.comparison
    best = max(rows, key=lambda row: row.comparisons[0].elements, default=None)
    return (best, best.comparisons[0]) if best else None


# --- notes in the source ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Note:
    """A message that belongs beside a line of the student's file."""

    kind: Literal["error", "warning", "advice"]
    label: str
    text: str


@dataclass(frozen=True)
class Sighting:
    """An event with the cases it was seen in and how often in all."""

    event: Event
    cases: tuple[str, ...]
    count: int


def sightings(events: Iterable[Event]) -> tuple[Sighting, ...]:
    """Return the events, those at the same lines in several cases as one, errors first.

    Events without a place are the same when they differ in numbers only.
    """
    alike: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        line, other = _event_line(event), event.other.line if event.other else 0
        same = (line, other, event.variable) if line else re.sub(r"\d+", "#", event.message)
        alike.setdefault((event.kind, event.severity, same), []).append(event)
    found = [
        Sighting(group[0], tuple(dict.fromkeys(e.case for e in group if e.case)), sum(e.count for e in group))
        for group in alike.values()
    ]
    found.sort(key=lambda sighting: ("error", "warning", "advice").index(sighting.event.severity))
    return tuple(found)


def notes(result: Result) -> dict[int, list[Note]]:
    """Return the messages for each line of the student's file, each message once."""
    found: dict[int, list[Note]] = {}

    def add(line: int, note: Note) -> None:
        here = found.setdefault(line, [])
        if line and note not in here:
            here.append(note)

    for message in result.build.messages:
        kind: Literal["error", "warning", "advice"] = (
            "advice" if message.severity == "note" else message.severity
        )
        add(message.line, Note(kind, f"compiler {message.severity}", message.text))
    for diagnosis in result.diagnoses:
        add(diagnosis.line, Note("error", "cause", diagnosis.title))
    for event in (sighting.event for sighting in sightings(result.events)):
        add(_event_line(event), Note(event.severity, event.kind.replace("_", " "), event.message))
        if event.other and event.other.line != _event_line(event):
            add(event.other.line, Note(event.severity, event.kind.replace("_", " "), _elsewhere(event)))
    for finding in result.findings:
        if finding.status == "fail" and finding.line and finding.line not in found:
            add(finding.line, Note("error", finding.check, finding.summary))
    found.pop(0, None)
    return {line: found[line] for line in sorted(found)}


def _elsewhere(event: Event) -> str:
    line = _event_line(event)
    return f"the other side of what is reported at line {line}" if line else event.message


def source_line(result: Result, line: int) -> str:
    """Return one line of the student's file, "" when there is no such line."""
    lines = result.submission.source.split("\n")  # as compilers count: a form feed ends no line
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
