"""workspace: how much device memory the function takes for itself."""

from grader import inputs
from grader.checks._subjects import SubmissionSubject
from grader.records import Verdict

SCOPE = "submission"
AFTER = ("compiles",)
DEFAULT_LIMIT = "16*N*d + 65536"
"""Bytes: room for a few arrays of the size of Q, and far less than the N x N scores when N is large."""


def check(subject: SubmissionSubject) -> Verdict:
    """Extra device memory grows with N, not with N x N, and is given back."""
    limit = str(subject.spec.options.get("limit", DEFAULT_LIMIT))
    peak = 0
    for examined in subject.examined:
        if examined.run.status != "ok":
            continue  # it never came to its cudaFree; `runs` tells why
        run, dims = examined.run, examined.case.dims
        peak = max(peak, run.peak_bytes)
        allowed = int(inputs.evaluate(limit, dims))
        shown = " ".join(f"{name}={value}" for name, value in dims.items())
        if run.peak_bytes > allowed:
            return Verdict(
                "fail",
                f"your function took {_bytes(run.peak_bytes)} of device memory beside its arguments at"
                f" {shown}; {_bytes(allowed)} are allowed there{_scores(run.peak_bytes, dims)}",
                "keep scores in registers and shared memory, one tile at a time: that is FlashAttention",
            )
        if run.leaked_bytes > 0:
            return Verdict(
                "fail",
                f"{_bytes(run.leaked_bytes)} of device memory were still held when your function returned",
                "every cudaMalloc needs its cudaFree",
            )
    return Verdict("pass", f"at most {_bytes(peak)}" if peak else "none taken")


def _scores(peak: int, dims: dict[str, int]) -> str:
    """Name the usual culprit: the full matrix of scores."""
    rows = dims.get("N", 0)
    return ". An N x N matrix of float has " + _bytes(4 * rows * rows) if peak >= 4 * rows * rows > 0 else ""


def _bytes(count: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
