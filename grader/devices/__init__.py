"""Where a submission is built and run. A new device is one file with a class that fits `Device`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from grader.errors import GraderError, UsageError
from grader.jobs import Call
from grader.records import Build, DeviceInfo, DeviceName, Entry, Run, Submission

Choice = Literal["auto", "cpu", "cuda"]


class Device(Protocol):
    """What the pipeline asks of a device."""

    name: DeviceName

    def info(self) -> DeviceInfo:
        """Describe the device for the report."""
        ...

    def build(self, entries: Sequence[Entry], submission: Submission, folder: Path) -> Build:
        """Compile the submission into a library that exposes the entries, working in `folder`."""
        ...

    def run(
        self, build: Build, calls: Sequence[Call], folder: Path, progress: Callable[[int], None]
    ) -> list[Run]:
        """Make every call; one `Run` for each, in order, whatever the student's code does.

        `progress` is told from time to time how many have ended.
        """
        ...


def pick(choice: str) -> Device:
    """Return the device of that name; `auto` takes the best that this machine has.

    Raises `GraderError` when the machine lacks it, saying what to install.
    """
    if choice == "cuda":
        raise UsageError("this version grades on the CPU only", "leave out --on, or use --on cpu")
    if choice not in ("auto", "cpu"):
        raise UsageError(f"unknown device '{choice}'", "use auto, cpu or cuda")
    from grader.devices import cpu
    from grader.emulator import toolchain

    compiler = toolchain.find()
    if compiler is None:
        raise GraderError(
            "no C++ compiler found (looked for $CXX, g++, clang++ and c++ on PATH)", toolchain.INSTALL_HINT
        )
    return cpu.CpuDevice(compiler)
