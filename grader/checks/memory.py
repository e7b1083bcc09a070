"""memory: every access lies inside the array that it names."""

from grader.checks._subjects import SubmissionSubject
from grader.records import Verdict

SCOPE = "submission"
AFTER = ("compiles",)


def check(subject: SubmissionSubject) -> Verdict:
    """No buffer is written beyond its end."""
    guilty = [examined for examined in subject.examined if examined.run.overrun_buffers]
    if not guilty:
        return Verdict("pass")
    first = guilty[0]
    names = ", ".join(first.run.overrun_buffers)
    more = f" (and in {len(guilty) - 1} more cases)" if len(guilty) > 1 else ""
    dims = " ".join(f"{name}={value}" for name, value in first.case.dims.items())
    return Verdict(
        "fail",
        f'the kernel wrote beyond the end of {names} in case "{first.case.name}" ({dims}){more}',
        "guard the store: only rows below N exist",
    )
