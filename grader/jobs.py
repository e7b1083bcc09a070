"""The parent's side of the runner: writes a job, starts the child, reads what it measured.

Nothing here trusts the child: sizes are those of the manifest, a missing or short answer is a verdict on the
run and never an exception, and no expected value is ever written where the child could read it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from grader import inputs, sandbox
from grader.course import scalars_of
from grader.records import Case, Entry, Event, Frame, Launch, Parameter, Run, RunStatus

RUNNER = Path(__file__).with_name("runner.py")
POISON = 0xFF
"""Every byte of an output before the call: NaN as float16, bfloat16 and float32, -1 as int32."""

Locate = Callable[[Sequence[int]], Mapping[int, Frame]]
"""Turns program counters (offsets into the built library) into places in the student's source."""


@dataclass(frozen=True)
class Call:
    """One case, ready to run: `arrays` are its inputs by name (None for a null pointer)."""

    case: Case
    entry: Entry
    entry_index: int
    arrays: Mapping[str, Any]
    repeats: int = 1
    seconds: float = 20.0
    kernel_seconds: float = 5.0


class _Answer(msgspec.Struct, frozen=True):
    """What the child says of one call. Decoded strictly: the child may be hostile."""

    exception: str
    error: int
    error_name: str
    error_text: str
    peak_bytes: int
    live_bytes: int
    d2h_bytes: int
    launches: list[dict[str, Any]]
    modified: list[str]
    overrun: list[str]
    duration: float


class _Supervised(msgspec.Struct, frozen=True):
    returncode: int
    timed_out: bool
    duration: float
    stdout: str
    stderr: str
    calls: list[_Answer]


class _RawEvent(msgspec.Struct, frozen=True):
    """An event as the runtime writes it; `pc` and `other_pc` are offsets in hexadecimal."""

    kind: str
    message: str
    severity: str = "error"
    kernel: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    pc: str | None = None
    other_pc: str | None = None
    variable: str | None = None
    count: int = 1


def run(
    calls: Sequence[Call],
    library: Path,
    folder: Path,
    *,
    workers: int,
    locate: Locate,
    progress: Callable[[int], None] = lambda done: None,
    python_options: Sequence[str] = ("-I", "-S"),
) -> list[Run]:
    """Make `calls` against `library` in one runner process, working in `folder` (which must not exist yet).

    `progress` is told from time to time how many calls have ended.
    """
    folder.mkdir(parents=True)
    job = {
        "library": str(library),
        "workers": workers,
        "calls": [_describe(call, index, folder) for index, call in enumerate(calls)],
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    budget = sum(call.seconds + 1 for call in calls) + 10
    limits = sandbox.Limits(wall=budget, cpu=math.ceil(budget) * max(workers, 2))
    completed = sandbox.run(
        [sys.executable, *python_options, str(RUNNER), "."],
        cwd=folder,
        limits=limits,
        tick=lambda: progress(sum((folder / f"{index}.json").exists() for index in range(len(calls)))),
    )
    return [_read(call, index, folder, completed, locate) for index, call in enumerate(calls)]


class StaticShared(msgspec.Struct, frozen=True):
    """A function whose static `__shared__` arrays are beyond CUDA's limit, and where the largest stands."""

    kernel: str
    bytes: int
    line: int


def static_shared(library: Path) -> list[StaticShared]:
    """Return the functions of a built library that need more static shared memory than CUDA allows.

    The library has to be loaded to know, which runs the student's static initialisers: in a child, as ever.
    A library that does not survive that has none; the run will tell what is wrong with it.
    """
    command = [sys.executable, "-I", "-S", str(RUNNER), "--static-shared", str(library)]
    done = sandbox.run(command, cwd=library.parent, limits=sandbox.Limits(wall=10, cpu=10))
    try:
        return msgspec.json.decode(done.stdout, type=list[StaticShared])
    except msgspec.MsgspecError:
        return []


def _describe(call: Call, index: int, folder: Path) -> dict[str, Any]:
    values = scalars_of(call.entry, call.case)
    arguments: list[dict[str, Any]] = []
    for parameter in call.entry.parameters:
        if parameter.role == "stream":
            arguments.append({"kind": "stream"})
        elif parameter.role == "scalar":
            value = values[parameter.name]
            arguments.append({"kind": "scalar", "type": parameter.dtype, "value": value})
        else:
            arguments.append(_buffer(call, parameter, index, folder))
    return {
        "symbol": f"grader_call_{call.entry_index}",
        "seconds": call.seconds,
        "kernel_seconds": call.kernel_seconds,
        "schedules": list(range(call.repeats)),
        "arguments": arguments,
    }


def _buffer(call: Call, parameter: Parameter, index: int, folder: Path) -> dict[str, Any]:
    buffer: dict[str, Any] = {"kind": "buffer", "name": parameter.name, "role": parameter.role}
    array = call.arrays.get(parameter.name)
    if parameter.role != "out" and array is None:
        return buffer | {"null": True, "bytes": 0}
    buffer["bytes"] = _bytes_of(parameter, call.case)
    if parameter.role != "out":
        name = f"{index}.{parameter.name}.bin"
        (folder / name).write_bytes(np.ascontiguousarray(array).tobytes())
        buffer["file"] = name
    return buffer


def _bytes_of(parameter: Parameter, case: Case) -> int:
    return math.prod(inputs.shape(parameter, case.dims)) * inputs.numpy_dtype(parameter.dtype).itemsize


def _read(call: Call, index: int, folder: Path, completed: sandbox.Completed, locate: Locate) -> Run:
    """Make a `Run` of what the child left behind for one call."""
    supervised = _decoded(folder / f"{index}.json", _Supervised)
    if supervised is None:
        return _lost(call, folder, completed)
    events = _events(folder / f"{index}.events", locate)
    status, message, hint = _status(call, supervised, events)
    outputs = [_outputs(call, index, repeat, folder) for repeat in range(len(supervised.calls))]
    first = supervised.calls[0] if supervised.calls else None
    return Run(
        case=call.case.name,
        status=status,
        message=message,
        hint=hint,
        outputs=outputs[0] if outputs else {},
        repeats=tuple(outputs[1:]),
        modified_inputs=tuple(sorted({name for answer in supervised.calls for name in answer.modified})),
        overrun_buffers=tuple(sorted({name for answer in supervised.calls for name in answer.overrun})),
        events=events,
        launches=tuple(_launches(first.launches)) if first else (),
        peak_bytes=first.peak_bytes if first else 0,
        leaked_bytes=first.live_bytes if first else 0,
        device_to_host_bytes=first.d2h_bytes if first else 0,
        duration=first.duration if first else supervised.duration,
        stdout=supervised.stdout,
        stderr=supervised.stderr,
    )


def _lost(call: Call, folder: Path, completed: sandbox.Completed) -> Run:
    """The runner ended before it came to this call: the student's doing, or the grader's fault?"""
    load = _decoded(folder / "load.json", dict[str, str])
    printed = completed.stdout + completed.stderr
    if load is not None:
        message = f"the built library cannot be loaded: {load.get('error', '')}"
        return Run(call.case.name, "lost", message, stderr=printed)
    if completed.timed_out:
        message = "the program did not end before its deadline, even before this case was called"
        return Run(call.case.name, "timeout", message, stderr=printed)
    # Static initialisers run when the library is loaded, before any case.
    how = _ending(completed.returncode)
    message = f"the program {how} before this case was called"
    hint = "something runs before your function is called: look at global variables with constructors"
    return Run(call.case.name, "exit", message, hint, stderr=printed)


def _status(call: Call, supervised: _Supervised, events: tuple[Event, ...]) -> tuple[RunStatus, str, str]:
    """Name what ended the call. What the runtime saw outranks what the exit code suggests."""
    for event in events:
        if event.severity == "error" and event.kind in _EVENT_STATUS:
            status, hint = _EVENT_STATUS[event.kind]
            return status, event.message, hint
    if supervised.timed_out:
        message = f"your function did not return within {call.seconds:.0f} s"
        return "timeout", message, "look for a host loop that never ends, or an N^2 loop on the host"
    if supervised.returncode == 119 and "runner: " in supervised.stderr:
        return "lost", f"the runner failed: {supervised.stderr.strip()[-200:]}", ""
    # Code 0 with an answer missing: exit(0) inside the function, in the first call or in a repeat.
    if supervised.returncode != 0 or len(supervised.calls) < call.repeats:
        message = f"your program {_ending(supervised.returncode)}"
        if said := _last_line(supervised):
            message += f" after printing: {said}"
        status = "crash" if supervised.returncode < 0 else "exit"
        return status, message, _EXIT_HINT if status == "exit" else _CRASH_HINT
    for answer in supervised.calls:
        if answer.exception:
            return "exception", f"a C++ exception left your function: {answer.exception}", ""
        if answer.error:
            message = f"{answer.error_name}: {answer.error_text}"
            return "launch_failed", f"CUDA reports {message}", _LAUNCH_HINT
    return "ok", "", ""


_EXIT_HINT = "your function must return to its caller; it may not call exit()"
_CRASH_HINT = "host code crashed: is a device pointer dereferenced on the host?"
_LAUNCH_HINT = "check cudaGetLastError() after the launch, and print cudaGetErrorString() of it"
_BOUNDS_HINT = "compare every index with the size of the array, for the last tile too"
_EVENT_STATUS: dict[str, tuple[RunStatus, str]] = {
    "illegal_access": ("illegal_access", _BOUNDS_HINT),
    "host_access": ("crash", "host code cannot read device memory: copy it with cudaMemcpy first"),
    "host_pointer": (
        "illegal_access",
        "a kernel can only use device pointers: copy the data with cudaMemcpy",
    ),
    "barrier": (
        "barrier",
        "every thread of the block must reach the same __syncthreads(): keep it out of branches and loops"
        " that only some threads take",
    ),
    "hang": ("hang", "look at the loop's condition and step: does every thread make progress?"),
    "launch_failed": ("launch_failed", _LAUNCH_HINT),
    "static_shared_limit": (
        "launch_failed",
        "use smaller tiles, or dynamic shared memory with cudaFuncSetAttribute",
    ),
    "assert": ("trap", "an assert() in your kernel failed"),
    "trap": ("trap", "your kernel called __trap()"),
    "stack_overflow": (
        "crash",
        "a thread's local arrays are too large: use shared memory, or smaller arrays",
    ),
    "crash": ("crash", _CRASH_HINT),
    "unsupported": ("unsupported", "this needs a real GPU"),
}


_NOISE = frozenset({"sticky_error"})  # that later CUDA calls fail as well: true, and no news


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with {returncode}"
    import signal

    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def _last_line(supervised: _Supervised) -> str:
    lines = (supervised.stderr.strip() or supervised.stdout.strip()).splitlines()
    return lines[-1].strip()[:200] if lines else ""


def _outputs(call: Call, index: int, repeat: int, folder: Path) -> dict[str, Any]:
    outputs = {}
    for parameter in call.entry.parameters:
        if parameter.role not in ("out", "inout"):
            continue
        dtype, shape = inputs.numpy_dtype(parameter.dtype), inputs.shape(parameter, call.case.dims)
        size = _bytes_of(parameter, call.case)
        try:
            with (folder / f"{index}.{parameter.name}.{repeat}.bin").open("rb") as file:
                data = file.read(size + 1)
        except OSError:
            data = b""
        if len(data) != size:
            data = bytes([POISON]) * size
        outputs[parameter.name] = np.frombuffer(data, dtype).reshape(shape)
    return outputs


def _events(path: Path, locate: Locate) -> tuple[Event, ...]:
    try:
        lines = path.read_bytes().splitlines()[:500]
    except OSError:
        return ()
    raw = []
    for line in lines:
        try:
            raw.append(msgspec.json.decode(line, type=_RawEvent))
        except msgspec.MsgspecError:
            continue  # cut in the middle by a crash
    counters = {int(pc, 16) for event in raw for pc in (event.pc, event.other_pc) if pc}
    frames = locate(sorted(counters)) if counters else {}
    return tuple(_event(event, frames) for event in raw if event.kind not in _NOISE)


def _event(raw: _RawEvent, frames: Mapping[int, Frame]) -> Event:
    where = frames.get(int(raw.pc, 16)) if raw.pc else None
    other = frames.get(int(raw.other_pc, 16)) if raw.other_pc else None
    message = _with_place(_with_place(raw.message, "{pc}", where), "{other_pc}", other)
    severity = raw.severity if raw.severity in ("error", "warning", "advice") else "error"
    return Event(
        kind=raw.kind,
        message=message,
        severity=severity,  # type: ignore[arg-type]
        kernel=raw.kernel,
        block=raw.block,
        thread=raw.thread,
        where=where,
        other=other,
        variable=raw.variable or "",
        count=raw.count,
    )


def _with_place(message: str, placeholder: str, place: Frame | None) -> str:
    if place and place.line:
        return message.replace(placeholder, f"line {place.line}")
    return message.replace(f" at {placeholder}", "")


def _launches(raw: list[dict[str, Any]]) -> list[Launch]:
    try:
        return msgspec.convert(raw, list[Launch])
    except msgspec.ValidationError:
        return []


def _decoded(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
