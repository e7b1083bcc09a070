"""The child process that loads a built library and calls the student's entries.

Run as a script, by path, with nothing but the standard library: it starts in milliseconds and can import
nothing of the grader. It is told what to call in `job.json` and answers with files: `<call>.json`, one
`<call>.<output>.<repeat>.bin` for each output, and `<call>.events`. It never holds an expected value.

On the CPU each call is made in a process forked from this one, so that a crash ends that call only, and no
call finds what an earlier one left behind.

job.json::

    {"library": "kernel.so", "workers": 2, "calls": [
        {"symbol": "grader_call_0", "seconds": 10.0, "kernel_seconds": 5.0, "schedules": [0, 1],
         "arguments": [{"kind": "buffer", "name": "Q", "role": "in", "bytes": 512, "file": "0.Q.bin"},
                       {"kind": "buffer", "name": "mask", "role": "in", "bytes": 0, "null": true},
                       {"kind": "scalar", "type": "int", "value": 113}, {"kind": "stream"}]}]}
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

OUTPUT_CAP = 16 * 1024
HANG_CODE = 121  # the runtime's exit code for a kernel that does not end
PATIENCE = 2  # cases that may use up their whole limit
IMPATIENT_SECONDS = 2.0
SCALARS = {
    "int": ctypes.c_int,
    "int64": ctypes.c_longlong,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}


class Stats(ctypes.Structure):
    """Mirrors `struct grader_rt_stats`."""

    _fields_ = [
        ("size", ctypes.c_int64),
        ("launches", ctypes.c_int64),
        ("peak_bytes", ctypes.c_int64),
        ("live_bytes", ctypes.c_int64),
        ("d2h_bytes", ctypes.c_int64),
        ("h2d_bytes", ctypes.c_int64),
        ("sync_calls", ctypes.c_int64),
        ("kernel_seconds", ctypes.c_double),
    ]


def main(folder: str) -> None:
    """Make every call of `job.json` in `folder`, one after the other."""
    os.chdir(folder)
    with open("job.json", "rb") as file:
        job = json.load(file)
    try:
        library = _load(job["library"])
    except OSError as error:
        _write_json("load.json", {"error": str(error)})
        return
    endless = 0
    for index, call in enumerate(job["calls"]):
        if endless >= PATIENCE:
            # A kernel that never ends costs its whole limit in every case; the later ones get less.
            call["seconds"] = min(call["seconds"], IMPATIENT_SECONDS + 2)
            call["kernel_seconds"] = min(call["kernel_seconds"], IMPATIENT_SECONDS)
        answer = _supervise(library, index, call, job["workers"])
        endless += answer["timed_out"] or answer["returncode"] == HANG_CODE
        _write_json(f"{index}.json", answer)


def print_static_shared(path: str) -> None:
    """Print, as JSON, the functions of a library that need more static shared memory than CUDA allows."""
    library, text = _load(path), ctypes.create_string_buffer(16 * 1024)
    library.grader_rt_static_shared(text, len(text))
    sys.stdout.write(text.value.decode())


def _load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(os.path.abspath(path), mode=os.RTLD_NOW)
    library.grader_rt_begin.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_int]
    library.grader_rt_begin.restype = None
    library.grader_rt_alloc.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
    library.grader_rt_alloc.restype = ctypes.c_void_p
    library.grader_rt_redzones_ok.argtypes = [ctypes.c_void_p]
    library.grader_rt_sync_error.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    library.grader_rt_stats.argtypes = [ctypes.POINTER(Stats)]
    library.grader_rt_launches.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.grader_rt_static_shared.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library


def _supervise(library: ctypes.CDLL, index: int, call: dict[str, Any], workers: int) -> dict[str, Any]:
    """Fork, let the child make the call, drain its output, and enforce its deadline."""
    streams = os.pipe(), os.pipe()
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 119  # "the runner itself failed"
        try:
            os.setpgid(0, 0)
            os.dup2(streams[0][1], 1)
            os.dup2(streams[1][1], 2)
            for pair in streams:
                for descriptor in pair:
                    os.close(descriptor)
            _make_call(library, index, call, workers)
            code = 0
        except BaseException as error:
            os.write(2, f"runner: {error!r}\n".encode())
        finally:
            os._exit(code)
    for pair in streams:
        os.close(pair[1])
    texts, timed_out = _drain(child, [pair[0] for pair in streams], started + call["seconds"])
    _, status = os.waitpid(child, 0)
    for pair in streams:
        os.close(pair[0])
    answer: dict[str, Any] = {
        "returncode": os.waitstatus_to_exitcode(status),
        "timed_out": timed_out,
        "duration": time.perf_counter() - started,
        "stdout": texts[0].decode("utf-8", "replace"),
        "stderr": texts[1].decode("utf-8", "replace"),
        "calls": [],
    }
    for repeat in range(len(call["schedules"])):
        try:
            with open(f"{index}.{repeat}.answer", "rb") as file:
                answer["calls"].append(json.load(file))
        except (OSError, ValueError):
            break
    return answer


def _drain(child: int, descriptors: list[int], deadline: float) -> tuple[list[bytes], bool]:
    """Read the child's output until it ends; kill its group at the deadline and at its end."""
    texts = {descriptor: bytearray() for descriptor in descriptors}
    opened = set(descriptors)
    timed_out = False
    # The pidfd becomes readable when the child ends, even if a grandchild keeps the pipes open.
    ended = os.pidfd_open(child)
    while True:
        remaining = deadline - time.perf_counter()
        ready, _, _ = select.select([*opened, ended], [], [], max(remaining, 0))
        for descriptor in ready:
            if descriptor == ended:
                continue
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                opened.discard(descriptor)
            room = OUTPUT_CAP - len(texts[descriptor])
            texts[descriptor].extend(chunk[: max(room, 0)])
        if ready == [ended] or (ended in ready and not opened):
            break
        if remaining <= 0 and not timed_out:
            timed_out = True
            os.killpg(child, signal.SIGKILL)
            deadline = time.perf_counter() + 1.0
        elif remaining <= 0:
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    os.close(ended)
    return [bytes(texts[descriptor]) for descriptor in descriptors], timed_out


def _make_call(library: ctypes.CDLL, index: int, call: dict[str, Any], workers: int) -> None:
    """Call the entry once for each schedule, each time on fresh buffers."""
    seconds = int(call["seconds"] * max(workers, os.cpu_count() or 1)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    events = os.open(f"{index}.events", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for repeat, schedule in enumerate(call["schedules"]):
        library.grader_rt_begin(events, workers, call["kernel_seconds"], schedule)
        buffers = [_buffer(library, argument) for argument in call["arguments"]]
        values = [_value(argument) for argument in call["arguments"]]
        pointers = (ctypes.c_void_p * len(values))(
            *(
                ctypes.addressof(value) if argument["kind"] == "scalar" else buffer
                for argument, buffer, value in zip(call["arguments"], buffers, values, strict=True)
            )
        )
        started = time.perf_counter()
        code = getattr(library, call["symbol"])(pointers)
        duration = time.perf_counter() - started
        answer = _answer(library, code)
        answer["duration"] = duration
        for argument, buffer in zip(call["arguments"], buffers, strict=True):
            if buffer:
                _collect(library, index, repeat, argument, buffer, answer)
        _write_json(f"{index}.{repeat}.answer", answer)
        library.grader_rt_end()


def _buffer(library: ctypes.CDLL, argument: dict[str, Any]) -> int | None:
    if argument["kind"] != "buffer" or argument.get("null"):
        return None
    address: int | None = library.grader_rt_alloc(argument["bytes"], argument["name"].encode())
    if address is None:
        raise MemoryError(f"no {argument['bytes']} bytes for {argument['name']}")
    if argument["role"] != "out":
        with open(argument["file"], "rb") as file:
            data = file.read()
        ctypes.memmove(address, data, len(data))
    return address


def _value(argument: dict[str, Any]) -> Any:
    if argument["kind"] == "scalar":
        return SCALARS[argument["type"]](argument["value"])
    return None


def _answer(library: ctypes.CDLL, code: int) -> dict[str, Any]:
    name, text = ctypes.create_string_buffer(128), ctypes.create_string_buffer(512)
    error = library.grader_rt_sync_error(name, 128, text, 512)
    stats = Stats(size=ctypes.sizeof(Stats))
    library.grader_rt_stats(ctypes.byref(stats))
    launches = ctypes.create_string_buffer(64 * 1024)
    library.grader_rt_launches(launches, len(launches))
    exception = ctypes.c_char * 256
    return {
        "exception": exception.in_dll(library, "grader_exception").value.decode("utf-8", "replace")
        if code
        else "",
        "error": error,
        "error_name": name.value.decode(),
        "error_text": text.value.decode(),
        "peak_bytes": stats.peak_bytes,
        "live_bytes": stats.live_bytes,
        "d2h_bytes": stats.d2h_bytes,
        "launches": json.loads(launches.value or b"[]"),
        "modified": [],
        "overrun": [],
    }


def _collect(
    library: ctypes.CDLL,
    index: int,
    repeat: int,
    argument: dict[str, Any],
    buffer: int,
    answer: dict[str, Any],
) -> None:
    """Write an output to its file; look whether an input or a red zone was changed."""
    data = ctypes.string_at(buffer, argument["bytes"])
    if argument["role"] == "in":
        with open(argument["file"], "rb") as file:
            if file.read() != data:
                answer["modified"].append(argument["name"])
    else:
        with open(f"{index}.{argument['name']}.{repeat}.bin", "wb") as file:
            file.write(data)
    if not library.grader_rt_redzones_ok(buffer):
        answer["overrun"].append(argument["name"])


def _write_json(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


if __name__ == "__main__":
    if sys.argv[1] == "--static-shared":
        print_static_shared(sys.argv[2])
    else:
        main(sys.argv[1])
