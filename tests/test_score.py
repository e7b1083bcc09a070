"""Points: what was earned, what could be assessed, what there is; and the exit code that follows."""

import pytest

from grader.records import Finding, Score
from grader.score import exit_code, score


def finding(status, points=0.0, max_points=0.0, *, assessed=True):
    return Finding("close", "title", "case", status, points, max_points, "", assessed=assessed)


def test_what_was_not_assessed_counts_only_in_the_total():
    findings = [finding("pass", 6, 6), finding("fail", 0, 4), finding("skip", 0, 10, assessed=False)]
    assert score(findings) == Score(6, 10, 20)


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([finding("pass", 1, 1)], 0),
        ([finding("pass", 1, 1), finding("skip", assessed=False)], 0),
        ([finding("pass", 1, 1), finding("fail")], 1),
        ([finding("fail"), finding("skip", 0, 5)], 1),
        ([finding("fail"), finding("error", assessed=False)], 3),
        ([finding("skip", assessed=False)], 3),
        ([], 3),
    ],
)
def test_the_exit_code_tells_falling_short_from_a_fault_of_the_grader(findings, code):
    assert exit_code(findings) == code
