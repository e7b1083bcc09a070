"""inputs_untouched: what is `const` in the assignment stays as it was."""

from grader.checks._subjects import SubmissionSubject
from grader.records import Verdict

SCOPE = "submission"
AFTER = ("compiles",)


def check(subject: SubmissionSubject) -> Verdict:
    """The inputs are left as they were."""
    guilty = [examined for examined in subject.examined if examined.run.modified_inputs]
    if not guilty:
        return Verdict("pass")
    first = guilty[0]
    names = ", ".join(first.run.modified_inputs)
    more = f" (and in {len(guilty) - 1} more cases)" if len(guilty) > 1 else ""
    return Verdict(
        "fail",
        f'{names} was changed in case "{first.case.name}"{more}',
        "the caller still needs its inputs: work on a copy, or in registers and shared memory",
    )
