"""deterministic: the same answer whatever order the hardware runs threads and blocks in."""

import numpy as np

from grader import compare
from grader.checks._subjects import CaseSubject, SubmissionSubject
from grader.records import Verdict

SCOPE = "submission"
AFTER = ("compiles",)
DEFAULT_REPEATS = 3
"""Calls of each examined case; the CPU device runs threads and blocks ascending, descending, then mixed."""


def check(subject: SubmissionSubject) -> Verdict:
    """The output does not depend on the order in which threads and blocks run."""
    for examined in _ended_well(subject):
        for repeat, outputs in enumerate(examined.run.repeats, start=2):
            if problem := _difference(examined, outputs, repeat):
                return Verdict(
                    "fail",
                    problem,
                    "two threads use the same memory without a __syncthreads() between them:"
                    " you need one after a tile is loaded, and one before it is overwritten",
                )
    judged = [examined for examined in _ended_well(subject) if examined.run.repeats]
    if not judged:
        return Verdict("skip", "no case ran to its end")
    return Verdict("pass", f"{len(judged)} cases, each in {1 + len(judged[0].run.repeats)} orders")


def _ended_well(subject: SubmissionSubject) -> list[CaseSubject]:
    """A launch that fails stops at another place each time; `runs` tells of that, and once is enough."""
    return [examined for examined in subject.examined if examined.run.status == "ok"]


def _difference(examined: CaseSubject, outputs: object, repeat: int) -> str:
    """Say how one repeat differs from the first call by more than rounding explains; "" if it does not."""
    assert isinstance(outputs, dict)
    for name, first in examined.run.outputs.items():
        before, after = compare.as_float(first), compare.as_float(outputs[name])
        bound = examined.expected[name].bound(examined.assignment.tolerance)
        same = (np.abs(before - after) <= bound) | (np.isnan(before) & np.isnan(after))
        if not same.all():
            count = np.count_nonzero(~same)
            return (
                f'in case "{examined.case.name}", {count} of {same.size} elements of {name} changed when the'
                f" same call was made again with threads and blocks in another order (call {repeat})"
            )
    return ""
