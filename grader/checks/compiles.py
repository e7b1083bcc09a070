"""compiles: the first thing that a kernel does."""

from grader.records import Build, Status, Verdict

SCOPE = "build"
AFTER: tuple[str, ...] = ()

_STATUS: dict[str, Status] = {"needs_gpu": "skip", "no_compiler": "error", "grader_fault": "error"}


def check(build: Build) -> Verdict:
    """The file compiles and has the function that the assignment asks for."""
    if build.status == "ok":
        warnings = sum(message.severity == "warning" for message in build.messages)
        return Verdict("pass", f"{warnings} warning{'s' if warnings > 1 else ''}" if warnings else "")
    line = next((message.line for message in build.messages if message.severity == "error"), 0)
    return Verdict(_STATUS.get(build.status, "fail"), build.message, build.hint, line)
