"""close: within the bound of a correct kernel's rounding."""

from grader import compare
from grader.checks._subjects import CaseSubject
from grader.records import Verdict

SCOPE = "case"
AFTER = ("finite",)


def check(subject: CaseSubject) -> Verdict:
    """The output equals the reference, up to what rounding explains."""
    comparisons = compare.all_outputs(subject)
    worst = max(comparisons, key=lambda comparison: comparison.outside)
    if worst.outside:
        return Verdict("fail", compare.summarise(worst), subject.case.hint, comparisons=comparisons)
    used = max(comparison.used or 0.0 for comparison in comparisons)
    return Verdict("pass", f"{used:.2f} of the tolerance used", comparisons=comparisons)
