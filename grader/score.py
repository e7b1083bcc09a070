"""From findings to a score. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from grader.records import Finding, Score


def score(findings: Iterable[Finding]) -> Score:
    """Add up the points.

    `total` is what the assignment is worth, `assessed` what this run could judge, `earned` what was earned
    of it. A finding that was not assessed (another device is needed, or the grader failed) counts only in
    `total`.
    """
    earned = assessed = total = 0.0
    for finding in findings:
        total += finding.max_points
        if finding.assessed:
            assessed += finding.max_points
            earned += finding.points
    return Score(round(earned, 6), round(assessed, 6), round(total, 6))


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 3 if the grader failed or nothing could be assessed, 1 if anything falls short, else 0."""
    findings = list(findings)
    if any(finding.status == "error" for finding in findings):
        return 3
    if not any(finding.assessed for finding in findings):
        return 3
    return 1 if any(finding.assessed and finding.status != "pass" for finding in findings) else 0
