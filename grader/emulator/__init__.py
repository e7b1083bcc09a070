"""CUDA on the CPU: headers and a small runtime that let a student's `.cu` run without a GPU.

`rewrite` turns CUDA's own syntax into C++; the headers in `include/` stand for CUDA's; the sources in
`runtime/` are compiled once and linked to every submission.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Mode = Literal["fast", "checked"]
Family = Literal["g++", "clang++"]

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
SOURCES = (_HERE / "runtime" / "runtime.cpp",)
"""One translation unit; it includes the others."""

# The kernels of a submission stay with it: without these, calls inside the shared library go through
# a table and are never inlined, and a second library of the process could take over its symbols.
_SHARED_LIBRARY = ["-fPIC", "-fno-semantic-interposition", "-fno-plt"]

# Checked mode: the compiler calls our runtime before every access. Link without these, or the sanitizers' own
# libraries come as well. clang instruments nothing wider than 16 bytes, and drops the read of `x += v`.
_BOUNDS = ["-fsanitize=alignment", "-fno-sanitize-recover=all", "-DGRADER_CHECKED"]
_INSTRUMENT: dict[Family, list[str]] = {
    "g++": ["-fsanitize=thread", "-fsanitize=bounds", *_BOUNDS],
    "clang++": [
        *("-fsanitize=thread", "-fsanitize=array-bounds", *_BOUNDS, "-fno-vectorize", "-fno-slp-vectorize"),
        *("-mllvm", "-tsan-instrument-read-before-write=1"),
    ],
}


def compile_flags(mode: Mode, compiler: Family) -> list[str]:
    """Return the flags that compile a rewritten submission, all but inputs and outputs."""
    level = ["-O2", "-g1"] if mode == "fast" else ["-O1", "-g", *_INSTRUMENT[compiler]]
    flags = ["-std=c++17", *level, *_SHARED_LIBRARY, f"-I{INCLUDE}", "-include", "cuda_runtime.h"]
    # Device code may divide by zero, overflow and pun; CUDA's compiler does not use such things against it.
    flags += [
        "-fwrapv",
        "-fno-strict-aliasing",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-stack-protector",
    ]
    # Pragmas such as `unroll` are for nvcc.
    flags += ["-Wall", "-Wno-unknown-pragmas", "-Wno-unused-function"]
    if compiler == "g++":
        return [*flags, "-fno-gnu-unique"]
    return [*flags, "-Wno-unused-const-variable", "-Wno-pass-failed"]


def runtime_flags(mode: Mode, compiler: Family) -> list[str]:
    """Return the flags that compile the runtime to one object file."""
    del compiler
    flags = [
        "-std=c++17",
        "-O2",
        "-g1",
        *_SHARED_LIBRARY,
        "-fvisibility=hidden",
        "-fexceptions",
        "-fno-stack-protector",
        "-pthread",
    ]
    flags += ["-DGRADER_CHECKED"] if mode == "checked" else []
    return [*flags, "-fno-strict-aliasing", "-Wall", "-Wextra", f"-I{INCLUDE}", "-c"]
