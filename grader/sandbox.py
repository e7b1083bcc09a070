"""How a child process is confined: its limits, its environment, its output, its end.

Every process that compiles or runs a student's text is started here and nowhere else: in a session and
process group of its own, without inherited descriptors, with stdin closed, a scrubbed environment, resource
limits, byte-capped output that is drained while it runs, and a deadline after which the group is killed.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """What a child may use. Times in seconds, sizes in bytes.

    `data` is RLIMIT_DATA and not RLIMIT_AS: guard pages and CUDA reserve far more address space than they
    ever touch.
    """

    wall: float = 60.0
    cpu: int = 60
    data: int = 4 * GIB
    file_size: int = GIB
    output: int = 64 * 1024


@dataclass(frozen=True)
class Completed:
    """How a child ended. `returncode` is negative for a signal, as in `subprocess`."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    duration: float


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment of a child: nothing of ours but PATH, and a home that is thrown away."""
    scrubbed = {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LC_ALL": "C",  # compilers answer in English and in ASCII quotes
    }
    return scrubbed | dict(extra or {})


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    limits: Limits,
    extra_environment: Mapping[str, str] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Completed:
    """Run `command` in `cwd` under `limits` and wait for its end.

    Raises `FileNotFoundError` when there is no such program. Output beyond the cap is read and dropped, so
    that a child that prints without end is stopped by its deadline and never by a full pipe. `tick` is called
    a few times a second, for whoever shows progress.
    """

    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(cwd, extra_environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _limit(process.pid, limits)
    try:
        texts, truncated, timed_out = _drain(process, started + limits.wall, limits.output, tick)
    finally:
        # Also after a normal end: what it left running in its group goes with it.
        _kill_session(process.pid)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
    return Completed(
        process.returncode, texts[0], texts[1], timed_out, truncated, time.perf_counter() - started
    )


def _kill_session(leader: int) -> None:
    """Kill every process of a child's session, those in process groups of their own too.

    The runner gives each case a group of its own, which a kill of the runner's group would miss. The listing
    is repeated until it is empty, because what is listed may fork meanwhile.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for _ in range(20):
        members = [pid for pid in _processes() if _session(pid) == leader]
        if not members:
            return
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208


def _session(pid: int) -> int | None:
    """Return the session of a process that runs; None for one that has ended."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:4]
    except OSError:
        return None
    return None if state in "ZX" else int(session)


def _limit(pid: int, limits: Limits) -> None:
    """Set the limits of a child that has just been started, before it has run any code of a student.

    From outside and not in a `preexec_fn`, which makes Python fork: a fork runs the handlers of every library
    of this process, and OpenBLAS deadlocks in its own when another thread is inside a matrix product.
    """
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, limits.cpu, limits.cpu + 2),
        (resource.RLIMIT_DATA, limits.data, limits.data),
        (resource.RLIMIT_FSIZE, limits.file_size, limits.file_size),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        with suppress(ProcessLookupError):
            resource.prlimit(pid, kind, (soft, hard))


def _drain(
    process: subprocess.Popen[bytes], deadline: float, cap: int, tick: Callable[[], None]
) -> tuple[tuple[str, str], bool, bool]:
    """Read both pipes until the child ends or the deadline passes: texts, truncated?, timed out?"""
    buffers = (bytearray(), bytearray())
    truncated = False
    with selectors.DefaultSelector() as selector:
        for stream, buffer in zip((process.stdout, process.stderr), buffers, strict=True):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, buffer)
        timed_out = False
        while selector.get_map():
            remaining = deadline - time.perf_counter()
            if remaining <= 0:
                timed_out = True
                break
            tick()
            # A grandchild may hold the pipe open after the child has ended: look at the child as well.
            for key, _ in selector.select(min(remaining, 0.2)):
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                room = cap - len(key.data)
                key.data.extend(chunk[: max(room, 0)])
                truncated |= len(chunk) > room
            if process.poll() is not None and not selector.select(0):
                break
    if not timed_out:
        try:
            process.wait(max(deadline - time.perf_counter(), 0))
        except subprocess.TimeoutExpired:
            timed_out = True
    first, second = (buffer.decode("utf-8", errors="replace") for buffer in buffers)
    return (first, second), truncated, timed_out
