"""runs: no crash, no hang, no refused launch."""

from grader.checks._subjects import CaseSubject
from grader.records import Status, Verdict

SCOPE = "case"
AFTER = ("compiles",)

_STATUS: dict[str, Status] = {"ok": "pass", "unsupported": "skip", "lost": "error"}


def check(subject: CaseSubject) -> Verdict:
    """The kernel is launched and runs to its end."""
    run = subject.run
    if run.status == "ok" and not run.launches and any(output.size for output in run.outputs.values()):
        summary = "your function returned without launching a kernel"
        return Verdict("fail", summary, "launch your kernel from it: kernel<<<grid, block>>>(...)")
    status = _STATUS.get(run.status, "fail")
    line = next((event.where.line for event in run.events if event.where), 0) if status == "fail" else 0
    return Verdict(status, run.message, run.hint, line)
