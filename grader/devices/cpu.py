"""The CPU device: the student's `.cu`, rewritten line by line, against our CUDA-on-CPU runtime.

Needs only a C++17 compiler. Threads of a block are fibers, blocks are spread over the machine's cores
(`grader/emulator/`).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grader import cache as store
from grader import compiler_messages, emulator, jobs, sandbox, trampoline
from grader.emulator import rewrite, symbols, toolchain
from grader.emulator.toolchain import Toolchain
from grader.records import Build, CompilerMessage, DeviceInfo, DeviceName, Entry, Frame, Run, Submission

SOURCE_NAME = "flash_attention.cu"
TRAMPOLINE_NAME = "grader_trampoline.cu"
STATIC_SHARED = 48 * 1024


class CpuDevice:
    """Builds with the machine's C++ compiler and runs on its cores."""

    name: DeviceName = "cpu"

    def __init__(self, compiler: Toolchain, workers: int = 0) -> None:
        self.toolchain = compiler
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
        runtime, prelude = toolchain.prepared(self.toolchain, submission.text, "fast")
        address = store.key(rewritten.text, made.text, *flags, runtime.name, self.toolchain.identity)
        library, log = store.get("kernels", address), store.get("kernels", f"{address}.log")
        if library and log:
            said = log.read_text(encoding="utf-8")
            return self._built(said, entries, submission, library=library, cached=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SOURCE_NAME).write_text(rewritten.text, encoding="utf-8")
        (folder / TRAMPOLINE_NAME).write_text(made.text, encoding="utf-8")
        command = [self.toolchain.path, *prelude, *flags, "-x", "c++", TRAMPOLINE_NAME]
        command += [
            "-x",
            "none",
            str(runtime),
            "-shared",
            "-Wl,-z,defs",
            "-pthread",
            "-ldl",
            "-o",
            "kernel.so",
        ]
        done = sandbox.run(command, cwd=folder, limits=toolchain.LIMITS)
        if done.timed_out:
            return self._timed_out(done.duration)
        said = done.stdout + done.stderr
        if done.returncode == 0:
            if too_much := jobs.static_shared(folder / "kernel.so"):
                return self._over_limit(too_much, done.duration)
            (folder / "log").write_text(said, encoding="utf-8")
            store.put("kernels", f"{address}.log", folder / "log")
            library = store.put("kernels", address, folder / "kernel.so")
        return self._built(said, entries, submission, library=library, duration=done.duration)

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

    def _built(
        self,
        said: str,
        entries: Sequence[Entry],
        submission: Submission,
        *,
        library: Path | None,
        duration: float = 0.0,
        cached: bool = False,
    ) -> Build:
        """Say what the compiler's words mean for the student; without a library, why there is none."""
        report = compiler_messages.read(said, self.toolchain.family, entries, submission.text, SOURCE_NAME)
        return Build(
            status="ok" if library else report.status,
            message="" if library else report.message,
            hint="" if library else report.hint,
            messages=report.messages,
            log=report.log,
            duration=duration,
            cached=cached,
            compiler=self.toolchain.version,
            library=library,
        )

    def _over_limit(self, too_much: Sequence[jobs.StaticShared], duration: float) -> Build:
        """Refuse what nvcc refuses, in the words of its assembler."""
        first = too_much[0]
        return Build(
            "limit",
            f"`{first.kernel}` uses too much shared data ({first.bytes:#x} bytes, {STATIC_SHARED:#x} max):"
            f" {first.bytes} bytes of static __shared__ arrays (line {first.line}), and CUDA allows 48 KB",
            "use smaller tiles, or dynamic shared memory with cudaFuncSetAttribute",
            messages=(CompilerMessage("error", first.line, 0, "too much static shared memory"),),
            duration=duration,
            compiler=self.toolchain.version,
        )

    def _timed_out(self, duration: float) -> Build:
        return Build(
            "timeout",
            f"the compiler did not finish within {toolchain.LIMITS.wall:.0f} s",
            "look for templates or constexpr functions that recurse without end",
            duration=duration,
            compiler=self.toolchain.version,
        )


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
