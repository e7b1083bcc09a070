"""From program counters to lines of the student's file."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.records import Frame


def locate(library: Path, counters: Sequence[int], source_name: str) -> Mapping[int, Frame]:
    """Return the place of each offset into `library`, for those that lie in the student's file.

    A counter inside inlined code has several frames; the innermost one in the student's file counts, so that
    an access inside one of our headers is told at the student's line that caused it. Without `addr2line`
    (part of binutils, beside every g++) nothing is known, and messages carry no line.
    """
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None or not counters:
        return {}
    command = [tool, "-a", "-f", "-i", "-C", "-e", str(library), *(hex(counter) for counter in counters)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return _parse(answer.stdout, source_name)


def _parse(text: str, source_name: str) -> dict[int, Frame]:
    """Read `0xADDRESS`, then pairs of a function and a `file:line`, innermost first."""
    frames: dict[int, Frame] = {}
    address, lines = -1, iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            address = int(line, 16)
            continue
        path, _, number = next(lines, "").rpartition(":")
        number = number.split(" ")[0]  # "36 (discriminator 3)"
        if address not in frames and Path(path).name == source_name and number.isdigit():
            frames[address] = Frame(source_name, int(number), line.split("(")[0])
    return frames
