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
            first = ",".join(map(str, np.argwhere(bad)[0]))
            value = str(compare.as_float(got)[bad][0]).replace("nan", "NaN").replace("inf", "infinity")
            count = np.count_nonzero(bad)
            summary = (
                f"{count} of {bad.size} elements of {name} are not finite;"
                f" the first is {name}[{first}] = {value}"
            )
            return Verdict("fail", summary, subject.case.hint, comparisons=compare.all_outputs(subject))
    return Verdict("pass")
