"""finite: no NaN, no infinity."""

import numpy as np

from grader import compare
from grader.checks._subjects import CaseSubject
from grader.records import Verdict

SCOPE = "case"
AFTER = ("written",)


def check(subject: CaseSubject) -> Verdict:
    """The output has no NaN and no infinity."""
    for name, got in subject.run.outputs.items():
        bad = ~np.isfinite(compare.as_float(got))
        if bad.any():
            where = compare.where(bad, subject.assignment.tile)
            first = ", ".join(map(str, np.argwhere(bad)[0]))
            value = compare.as_float(got)[bad][0]
            summary = f"{np.count_nonzero(bad)} of {bad.size} elements of {name} are NaN or infinite" + (
                f"; the first is {name}[{first}] = {value}" + (f". {where}" if where else "")
            )
            return Verdict("fail", summary, subject.case.hint, comparisons=compare.all_outputs(subject))
    return Verdict("pass")
