"""The CPU device: the student's `.cu`, rewritten line by line, against our CUDA-on-CPU runtime.

Needs only a C++17 compiler. Threads of a block are fibers, blocks are spread over the machine's cores
(`grader/emulator/`).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from grader import __version__, compiler_messages, emulator, jobs, sandbox, trampoline
from grader import cache as store
from grader.emulator import rewrite, symbols
from grader.errors import GraderError
from grader.records import Build, DeviceInfo, DeviceName, Entry, Frame, Run, Submission

INSTALL_HINT = "install one: 'apt install g++' on Debian and Ubuntu, 'dnf install gcc-c++' on Fedora"
SOURCE_NAME = "flash_attention.cu"
TRAMPOLINE_NAME = "grader_trampoline.cu"
COMPILE_LIMITS = sandbox.Limits(wall=60.0, cpu=60, data=4 * sandbox.GIB, file_size=256 * 2**20, output=2**20)

Family = Literal["g++", "clang++"]


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler. `identity` changes when the compiler does."""

    path: str
    family: Family
    version: str
    identity: str


def find_toolchain() -> Toolchain | None:
    """Return the C++ compiler of this machine: $CXX, then g++, clang++, c++; None if there is none."""
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++", "c++")):
        if path := shutil.which(name):
            return _toolchain(path)
    return None


@cache
def _toolchain(path: str) -> Toolchain | None:
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=20)
    lines = answer.stdout.splitlines()
    if answer.returncode != 0 or not lines:
        return None
    family: Family = "clang++" if "clang" in answer.stdout.lower() else "g++"
    return Toolchain(path, family, lines[0].strip(), store.key(path, answer.stdout))


class CpuDevice:
    """Builds with the machine's C++ compiler and runs on its cores."""

    name: DeviceName = "cpu"

    def __init__(self, toolchain: Toolchain, workers: int = 0) -> None:
        self.toolchain = toolchain
        self.workers = workers or len(os.sched_getaffinity(0))

    def info(self) -> DeviceInfo:
        """Describe the emulation, its threads, and the compiler."""
        return DeviceInfo(
            name="cpu",
            title=f"CPU emulation of CUDA, {self.workers} thread{'s' if self.workers > 1 else ''}",
            details={
                "processor": _processor(),
                "compiler": self.toolchain.version,
                "system": f"{platform.system()} {platform.machine()}",
            },
        )

    def build(self, entries: Sequence[Entry], submission: Submission, folder: Path) -> Build:
        """Rewrite, compile and link; every outcome that is the student's is a `Build`, not an exception."""
        rewritten = rewrite.rewrite(submission.text)
        if rewritten.unsupported:
            return _needs_gpu(rewritten.unsupported)
        made = trampoline.generate(entries, SOURCE_NAME, submission.text)
        flags = emulator.compile_flags("fast", self.toolchain.family)
        runtime = self._runtime()
        address = store.key(rewritten.text, made.text, *flags, runtime.name, self.toolchain.identity)
        if stored := store.get("kernels", address):
            return Build("ok", library=stored, cached=True, compiler=self.toolchain.version)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SOURCE_NAME).write_text(rewritten.text, encoding="utf-8")
        (folder / TRAMPOLINE_NAME).write_text(made.text, encoding="utf-8")
        library = folder / "kernel.so"
        command = [self.toolchain.path, *flags, "-x", "c++", TRAMPOLINE_NAME, "-x", "none", str(runtime)]
        command += ["-shared", "-pthread", "-ldl", "-o", str(library)]
        done = sandbox.run(command, cwd=folder, limits=COMPILE_LIMITS)
        return self._judge(done, entries, submission, library, address)

    def run(
        self,
        build: Build,
        calls: Sequence[jobs.Call],
        folder: Path,
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[Run]:
        """Make every call in a forked child of one runner process."""
        library = build.library
        assert library is not None

        def locate(counters: Sequence[int]) -> Mapping[int, Frame]:
            return symbols.locate(library, counters, SOURCE_NAME)

        return jobs.run(calls, library, folder, workers=self.workers, locate=locate, progress=progress)

    def _judge(
        self,
        done: sandbox.Completed,
        entries: Sequence[Entry],
        submission: Submission,
        library: Path,
        address: str,
    ) -> Build:
        """Say what the compiler's answer means for the student."""
        if done.timed_out:
            return Build(
                "timeout",
                f"the compiler did not finish within {COMPILE_LIMITS.wall:.0f} s",
                "look for templates or constexpr functions that recurse without end",
                duration=done.duration,
                compiler=self.toolchain.version,
            )
        report = compiler_messages.read(
            done.stdout + done.stderr, self.toolchain.family, entries, submission.text, SOURCE_NAME
        )
        if done.returncode == 0:
            stored = store.put("kernels", address, library)
            return Build(
                "ok",
                messages=report.messages,
                log=report.log,
                duration=done.duration,
                compiler=self.toolchain.version,
                library=stored,
            )
        return Build(
            report.status,
            report.message,
            report.hint,
            report.messages,
            report.log,
            done.duration,
            compiler=self.toolchain.version,
        )

    def _runtime(self) -> Path:
        """Return the runtime object, built once for each compiler and each version of the runtime.

        Raises `GraderError` when the compiler cannot build it: that is never the student's fault.
        """
        flags = emulator.runtime_flags("fast", self.toolchain.family)
        sources = b"".join(path.read_bytes() for path in _runtime_inputs())
        address = store.key(__version__, sources, *flags, self.toolchain.identity) + ".o"
        if stored := store.get("runtime", address):
            return stored
        import tempfile

        with tempfile.TemporaryDirectory(prefix="flashgrade-runtime-") as name:
            folder = Path(name)
            built = folder / "runtime.o"
            command = [self.toolchain.path, *flags, *map(str, emulator.SOURCES), "-o", str(built)]
            done = sandbox.run(command, cwd=folder, limits=COMPILE_LIMITS)
            if done.returncode != 0:
                reason = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
                raise GraderError(
                    f"{self.toolchain.path} cannot build the CUDA runtime: {reason.strip()[:300]}",
                    "flashgrade needs g++ 9 or later, or clang++ 10 or later; set CXX to another compiler",
                )
            stored = store.put("runtime", address, built)
            if stored == built:
                raise GraderError(
                    f"cannot write to the cache folder {store.root()}",
                    "make it writable, or set FLASHGRADE_CACHE to a folder that is",
                )
            return stored


def _runtime_inputs() -> list[Path]:
    here = emulator.INCLUDE.parent
    return sorted(path for path in here.rglob("*") if path.suffix in (".h", ".cpp", ".inc"))


def _needs_gpu(unsupported: Sequence[rewrite.Unsupported]) -> Build:
    first = unsupported[0]
    return Build(
        "needs_gpu",
        f"{first.what} (line {first.line}) needs a real GPU",
        "grade it on a machine with an NVIDIA GPU",
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
