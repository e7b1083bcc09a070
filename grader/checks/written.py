"""written: every element of every output."""

import numpy as np

from grader import compare
from grader.checks._subjects import CaseSubject
from grader.records import Verdict

SCOPE = "case"
AFTER = ("runs",)


def check(subject: CaseSubject) -> Verdict:
    """Every element of the output is written."""
    for name, got in subject.run.outputs.items():
        missing = compare.unwritten(got)
        if not missing.any():
            continue
        count = int(np.count_nonzero(missing))
        share = "" if count == missing.size else f"{count} of {missing.size} elements of "
        summary = f"{share}{name} {'were' if share else 'was'} never written"
        hint = "does every row have a thread that reaches the store? Is it read before it is written?"
        return Verdict("fail", summary, hint, comparisons=compare.all_outputs(subject))
    return Verdict("pass")
