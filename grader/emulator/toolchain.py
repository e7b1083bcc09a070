"""The C++ compiler of this machine, and what is built with it once: the runtime, precompiled headers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader import cache as store
from grader import emulator, sandbox
from grader.emulator import prelude
from grader.errors import GraderError

INSTALL_HINT = "install one: 'apt install g++' on Debian and Ubuntu, 'dnf install gcc-c++' on Fedora"
LIMITS = sandbox.Limits(wall=60.0, cpu=60, data=4 * sandbox.GIB, file_size=256 * 2**20, output=2**20)
MAX_PRELUDES = 6
"""A precompiled header has tens of megabytes, and most students of a class include the same ones."""


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler. `identity` changes when the compiler does."""

    path: str
    family: emulator.Family
    version: str
    identity: str


def find() -> Toolchain | None:
    """Return the C++ compiler of this machine: $CXX, then g++, clang++, c++; None if there is none."""
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++", "c++")):
        if (path := shutil.which(name)) and (toolchain := _examined(path)):
            return toolchain
    return None


def prepared(toolchain: Toolchain, text: str, mode: emulator.Mode) -> tuple[Path, Sequence[str]]:
    """Return the runtime object, and the options that use a precompiled header if there is one for `text`.

    Both are built the first time ever, side by side. A header for another set of includes is built when that
    set comes a second time: a class of one-off files would only pay for it. Raises `GraderError` when the
    compiler cannot build the runtime: that is never the student's fault.
    """
    first_time = store.get("runtime", _runtime_address(toolchain, mode)) is None
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(_prelude_options, toolchain, prelude.headers(text), mode, build=first_time)
        return _runtime(toolchain, mode), building.result()


@cache
def _examined(path: str) -> Toolchain | None:
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=20)
    lines = answer.stdout.splitlines()
    if answer.returncode != 0 or not lines:
        return None
    family: emulator.Family = "clang++" if "clang" in answer.stdout.lower() else "g++"
    return Toolchain(path, family, lines[0].strip(), store.key(path, answer.stdout))


@cache
def _sources() -> bytes:
    """Return all that the runtime and its headers are made of: what is built from them changes with them."""
    paths = sorted(
        path for path in emulator.INCLUDE.parent.rglob("*") if path.suffix in (".h", ".cpp", ".inc")
    )
    return b"".join(path.read_bytes() for path in paths)


def _runtime_address(toolchain: Toolchain, mode: emulator.Mode) -> str:
    flags = emulator.runtime_flags(mode, toolchain.family)
    return store.key(_sources(), *flags, toolchain.identity) + ".o"


def _runtime(toolchain: Toolchain, mode: emulator.Mode) -> Path:
    """Return the runtime object, built once for each compiler and each version of the runtime."""
    address = _runtime_address(toolchain, mode)
    if stored := store.get("runtime", address):
        return stored
    with tempfile.TemporaryDirectory(prefix="flashgrade-runtime-") as name:
        folder = Path(name)
        built = folder / "runtime.o"
        flags = emulator.runtime_flags(mode, toolchain.family)
        command = [toolchain.path, *flags, *map(str, emulator.SOURCES), "-o", str(built)]
        done = sandbox.run(command, cwd=folder, limits=LIMITS)
        if done.returncode != 0:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
            raise GraderError(
                f"{toolchain.path} cannot build the CUDA runtime: {reason.strip()[:300]}",
                "flashgrade needs g++ 9 or later, or clang++ 10 or later; set CXX to another compiler",
            )
        stored = store.put("runtime", address, built)
    if not stored.exists():
        raise GraderError(
            f"cannot write to the cache folder {store.root()}",
            "make it writable, or set FLASHGRADE_CACHE to a folder that is",
        )
    return stored


def _prelude_options(
    toolchain: Toolchain, names: tuple[str, ...], mode: emulator.Mode, *, build: bool
) -> Sequence[str]:
    suffix, option = (".h.gch", "-include") if toolchain.family == "g++" else (".pch", "-include-pch")
    flags = emulator.compile_flags(mode, toolchain.family)
    address = store.key(prelude.source(names), *flags, _runtime_address(toolchain, mode))
    # g++ reads the header itself when it finds that the precompiled one does not fit: both have to be there.
    header, stored = store.get("preludes", f"{address}.h"), store.get("preludes", address + suffix)
    if header is None or stored is None:
        worth_it = build or store.seen_before(address)
        stored = _build_prelude(toolchain, names, flags, address, suffix) if worth_it else None
    return (option, str(stored).removesuffix(".gch")) if stored else ()


def _build_prelude(
    toolchain: Toolchain, names: tuple[str, ...], flags: Sequence[str], address: str, suffix: str
) -> Path | None:
    """Precompile the headers; None when that fails, for a file compiles without them as well, only slower."""
    with tempfile.TemporaryDirectory(prefix="flashgrade-prelude-") as name:
        folder = Path(name)
        header, built = folder / "prelude.h", folder / "prelude.out"
        header.write_text(prelude.source(names), encoding="utf-8")
        command = [toolchain.path, *flags, "-x", "c++-header", str(header), "-o", str(built)]
        if sandbox.run(command, cwd=folder, limits=LIMITS).returncode != 0:
            return None
        kept_header = store.put("preludes", f"{address}.h", header, keep=2 * MAX_PRELUDES)
        kept = store.put("preludes", address + suffix, built, keep=2 * MAX_PRELUDES)
        return kept if kept != built and kept_header != header else None
