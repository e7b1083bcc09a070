"""How long a student waits: a full grade of 03, beside the lower limit that no grader could beat.

The lower limit is what the compiler needs for the file plus what the kernels need for the cases. Three
states: the first grade ever (the runtime is built), a changed file (the usual case), an unchanged file.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOLUTION = ROOT / "solutions" / "03_flash_attention" / "flash_attention.cu"
RUNS = 7


def grade(path: Path, cache: Path) -> tuple[float, dict, int]:
    """Grade one file in a process of its own: wall seconds, the result, peak memory of the grader in KiB."""
    command = [sys.executable, "-m", "grader", "grade", str(path), "-a", "03", "--json", "-"]
    environment = {**os.environ, "FLASHGRADE_CACHE": str(cache)}
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT) as process:
        output = process.stdout.read()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return time.perf_counter() - started, json.loads(output), usage.ru_maxrss


def help_page() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "grader", "--help"], check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - started


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "flash_attention.cu"
        source = SOLUTION.read_text()
        path.write_text(source)
        first, _, _ = grade(path, folder / "cache")
        warm, limits, memory = [], [], []
        for run in range(RUNS):
            path.write_text(f"{source}\n// {run} {time.time_ns()}\n")  # a changed file is compiled again
            seconds, result, kilobytes = grade(path, folder / "cache")
            warm.append(seconds)
            kernels = sum(case["duration"] for case in result["cases"])
            limits.append(result["build"]["duration"] + kernels)
            memory.append(kilobytes)
        again = [grade(path, folder / "cache")[0] for _ in range(RUNS)]
    starts = [help_page() for _ in range(RUNS)]
    median = statistics.median
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    cores = os.cpu_count()
    print(f"full grade of 03_flash_attention on {cores} cores, seconds, median of {RUNS} (least..most)")
    print(f"  first ever, runtime built   {first:6.2f}")
    print(f"  changed file                {median(warm):6.2f}  ({min(warm):.2f}..{max(warm):.2f})")
    print(f"  unchanged file              {median(again):6.2f}  ({min(again):.2f}..{max(again):.2f})")
    print(f"  lower limit, changed file   {median(limits):6.2f}  compile + kernels")
    print(f"  changed file / lower limit  {median(warm) / median(limits):6.2f}")
    print(f"grader --help                 {median(starts):6.2f}  ({min(starts):.2f}..{max(starts):.2f})")
    print(f"memory of the grader process  {max(memory) / 1024:6.0f} MiB (child: {largest_child / 1024:.0f})")


if __name__ == "__main__":
    main()
