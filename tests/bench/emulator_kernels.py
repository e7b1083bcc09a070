"""How fast kernels run in the emulator's fast mode: three styles of attention at four sizes.

Prints milliseconds (the best of several calls, host wrapper included) beside the figures of the feasibility
study, which had two quiet cores, and beside NumPy in the same process. `--cpu` prints CPU time divided by
the workers instead of wall time, which means more on a machine that is busy with other work.

    python tests/bench/emulator_kernels.py [--cpu] [--repeats 7] [--compiler g++] [--sizes 64x64,256x64]
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from grader import emulator  # noqa: E402
from grader.emulator import rewrite  # noqa: E402

STYLES = ("naive", "flash_rows", "warp_rows")
STUDY = {  # milliseconds on 2 cores, in the order of STYLES
    (64, 64): (2.1, 0.4, 2.2),
    (256, 64): (7.0, 1.5, 28.0),
    (1024, 64): (54.0, 30.0, 421.0),
    (2048, 128): (414.0, 126.0, 1852.0),
}
ENTRY = """
extern "C" __attribute__((visibility("default"))) void {style}_entry(void** a, int N, int d) {{
    {style}((float*)a[0], (float*)a[1], (float*)a[2], (float*)a[3], N, d);
}}
"""


def build(compiler: str, folder: Path) -> ctypes.CDLL:
    """Compile the kernels and the runtime as the CPU device does, and say how long each took."""
    family = "clang++" if "clang" in compiler else "g++"
    text = rewrite.rewrite(Path(__file__).with_suffix(".cu").read_text()).text
    (folder / "kernels.cu").write_text(text + "".join(ENTRY.format(style=style) for style in STYLES))
    runtime, library = folder / "runtime.o", folder / "kernels.so"
    started = time.perf_counter()
    flags = emulator.runtime_flags("fast", family)
    subprocess.run([compiler, *flags, *map(str, emulator.SOURCES), "-o", str(runtime)], check=True)
    between = time.perf_counter()
    flags = emulator.compile_flags("fast", family)
    command = [compiler, *flags, "-x", "c++", str(folder / "kernels.cu"), "-x", "none", str(runtime)]
    subprocess.run([*command, "-shared", "-pthread", "-ldl", "-o", str(library)], check=True)
    done = time.perf_counter()
    print(f"{compiler}: runtime {between - started:.2f} s, kernels {done - between:.2f} s")
    return ctypes.CDLL(str(library))


def attention(arrays: list[np.ndarray]) -> np.ndarray:
    """NumPy float32, as one would write it."""
    query, key, value = arrays
    scores = query @ key.T / np.float32(np.sqrt(query.shape[1]))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ value


def best(call: object, repeats: int, clock: object) -> float:
    """Milliseconds of the fastest of `repeats` calls."""
    times = []
    for _ in range(repeats):
        started = clock()
        call()
        times.append(clock() - started)
    return min(times) * 1e3


def measure(library: ctypes.CDLL, rows: int, head_dim: int, repeats: int, cpu: bool, workers: int) -> None:
    """One line of the table; every style's output is compared with NumPy's first."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((rows, head_dim), dtype=np.float32) for _ in range(3)]
    library.grader_rt_begin(2, workers, 600.0, 0)
    size = rows * head_dim * 4
    buffers = (ctypes.c_void_p * 4)(*(library.grader_rt_alloc(size, b"buffer") for _ in range(4)))
    for buffer, array in zip(buffers, arrays, strict=False):
        ctypes.memmove(buffer, array.ctypes.data, size)
    expected, line = attention(arrays), f"{rows:5}, {head_dim:3}"
    for style, study in zip(STYLES, STUDY.get((rows, head_dim), (0, 0, 0)), strict=True):
        entry = getattr(library, f"{style}_entry")
        entry(buffers, rows, head_dim)
        got = np.ctypeslib.as_array((ctypes.c_float * (rows * head_dim)).from_address(buffers[3]))
        assert np.abs(got.reshape(rows, head_dim) - expected).max() < 1e-4, style
        clock = (lambda: time.process_time() / workers) if cpu else time.perf_counter
        took = best(lambda entry=entry: entry(buffers, rows, head_dim), repeats, clock)
        line += f"   {took:9.2f} ({study:7.1f}, {took / study if study else 0:4.2f}x)"
    library.grader_rt_end()
    print(line + f"   {best(lambda: attention(arrays), repeats, time.perf_counter):9.2f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sizes", default=",".join(f"{rows}x{d}" for rows, d in STUDY))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        library = build(chosen.compiler, Path(name))
        library.grader_rt_begin.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_int]
        library.grader_rt_alloc.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
        library.grader_rt_alloc.restype = ctypes.c_void_p
        print(
            "    N,   d   naive (study, ratio)         flash, row a thread          warp a row        NumPy"
        )
        for text in chosen.sizes.split(","):
            rows, head_dim = map(int, text.split("x"))
            measure(library, rows, head_dim, chosen.repeats, chosen.cpu, chosen.workers)


if __name__ == "__main__":
    main()
