"""From paths to `Submission`s: reads what was handed in, and says plainly when it cannot be graded."""

from __future__ import annotations

import hashlib
from pathlib import Path

from grader.errors import UsageError
from grader.records import Submission

MAX_BYTES = 2 * 1024 * 1024
"""A hand-written kernel has a few kilobytes; what is larger is not one."""


def read(path: Path, expected_name: str = "flash_attention.cu") -> Submission:
    """Read one `.cu` file, or the file of that name in a folder.

    Raises `UsageError` for what is missing, empty, too large, binary, or not a file at all.
    """
    shown = str(path)
    if path.is_dir():
        path = _file_in(path, expected_name)
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise UsageError(f"{shown} is not a regular file", "name the .cu file that you wrote")
        if size > MAX_BYTES:
            limit = f"{MAX_BYTES // 2**20} MiB"
            raise UsageError(
                f"{shown} has {size / 2**20:.0f} MiB; a submission has at most {limit}",
                "hand in the .cu source, not a program or data",
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{shown}: there is no such file", _similar(path)) from None
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}") from None
    if not data.strip():
        raise UsageError(f"{shown} is empty", "did you save it?")
    if b"\0" in data:
        raise UsageError(
            f"{shown} is a binary file, not CUDA source", "hand in the .cu file, not the compiled program"
        )
    return from_bytes(data, path)


def from_bytes(data: bytes, path: Path) -> Submission:
    """Make a submission of bytes that are already here. Line endings become `\\n` in `text`."""
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Submission(path, path.name, data, text, hashlib.sha256(data).hexdigest())


def _file_in(folder: Path, expected_name: str) -> Path:
    if (folder / expected_name).is_file():
        return folder / expected_name
    found = sorted(path.name for path in folder.iterdir() if path.suffix.lower() == ".cu")
    if len(found) == 1:
        return folder / found[0]
    what = f"{len(found)} .cu files ({', '.join(found[:4])})" if found else "no .cu file"
    raise UsageError(f"{folder} is a folder with {what}", f"name the file: {folder / expected_name}")


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist either"
    found = sorted(entry.name for entry in path.parent.iterdir() if entry.suffix.lower() == ".cu")
    return f"in that folder there is: {', '.join(found[:4])}" if found else ""
