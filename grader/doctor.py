"""What this machine can do for a grader, and what to install for the rest."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader import cache
from grader.errors import GraderError

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Examined:
    """One thing that was looked at. `needed`: without it nothing can be graded."""

    what: str
    ok: bool
    found: str
    advice: str = ""
    needed: bool = False


def examine() -> list[Examined]:
    """Look at everything that grading uses, without changing anything but the cache folder."""
    return [
        _python(),
        _compiler(),
        _addr2line(),
        _course(),
        _cache(),
        _sandbox(),
        _nvcc(),
        _gpu(),
        _package("cupy", "optional: pip install 'flashgrade[cuda13]' (or [cuda12])"),
        _modal(),
    ]


def can_grade(examined: Sequence[Examined]) -> bool:
    """Whether a submission can be graded on this machine, on the CPU at least."""
    return all(item.ok for item in examined if item.needed)


def show(examined: Sequence[Examined], console: Console) -> None:
    """Print a table, then one sentence that says what it means."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("What")
    table.add_column("Found", overflow="fold")
    for item in examined:
        word, style = (
            ("ok", "green") if item.ok else (("MISSING", "bold red") if item.needed else ("no", "yellow"))
        )
        found = Text(item.found)
        if not item.ok and item.advice:
            found.append(f"\n{item.advice}", style="dim")
        table.add_row(Text(word, style=style), item.what, found)
    console.print(table)
    console.print()
    if can_grade(examined):
        console.print("This machine grades on its CPU: grader grade flash_attention.cu", highlight=False)
        console.print(
            "nvcc, a GPU, cupy and Modal are for grading on a GPU, which this version does not do yet.",
            style="dim",
            highlight=False,
        )
    else:
        missing = ", ".join(item.what for item in examined if item.needed and not item.ok)
        console.print(f"This machine cannot grade yet. Missing: {missing}.", highlight=False)


def _python() -> Examined:
    version = sys.version.split()[0]
    return Examined("Python", sys.version_info >= (3, 11), version, "3.11 or later is needed", needed=True)


def _compiler() -> Examined:
    from grader.emulator import toolchain

    found = toolchain.find()
    if found is None:
        return Examined("C++ compiler", False, "none on PATH", toolchain.INSTALL_HINT, needed=True)
    return Examined("C++ compiler", True, f"{found.version} ({found.path})", needed=True)


def _addr2line() -> Examined:
    path = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    return Examined(
        "addr2line",
        path is not None,
        path or "not on PATH",
        "for line numbers in messages: apt install binutils",
    )


def _course() -> Examined:
    from grader import course
    from grader.resources import assignments_dir

    try:
        slugs = course.slugs()
        for slug in slugs:
            course.load(course.find(slug))
        found = f"{len(slugs)} assignment{'s' if len(slugs) != 1 else ''} in {assignments_dir()}"
        return Examined("course", bool(slugs), found, "reinstall flashgrade", needed=True)
    except GraderError as error:
        return Examined("course", False, error.message, error.hint, needed=True)


def _cache() -> Examined:
    folder = cache.root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    advice = "make it writable, or set FLASHGRADE_CACHE to a folder that is"
    return Examined("cache folder", writable, str(folder), advice, needed=True)


def _sandbox() -> Examined:
    path = shutil.which("bwrap")
    found = path or "own process group and resource limits only"
    return Examined("bubblewrap", path is not None, found, "optional: apt install bubblewrap")


def _nvcc() -> Examined:
    home = os.environ.get("CUDA_HOME")
    path = shutil.which("nvcc") or (shutil.which("nvcc", path=str(Path(home) / "bin")) if home else None)
    if path is None:
        return Examined(
            "nvcc",
            False,
            "not on PATH, nor in CUDA_HOME",
            "optional: pip install 'flashgrade[nvcc]', or NVIDIA's toolkit",
        )
    answer = _output([path, "--version"])
    release = next((line for line in answer.splitlines() if "release" in line), answer).strip()
    return Examined("nvcc", True, f"{release} ({path})")


def _gpu() -> Examined:
    tool = shutil.which("nvidia-smi")
    name = _output([tool, "--query-gpu=name", "--format=csv,noheader"]).strip() if tool else ""
    return Examined("NVIDIA GPU", bool(name), name.replace("\n", ", ") or "none")


def _package(name: str, advice: str) -> Examined:
    there = importlib.util.find_spec(name) is not None
    return Examined(name, there, "installed" if there else "not installed", advice)


def _modal() -> Examined:
    if importlib.util.find_spec("modal") is None:
        return Examined("Modal", False, "not installed", "optional: pip install 'flashgrade[modal]'")
    config = Path(os.environ.get("MODAL_CONFIG_PATH", Path.home() / ".modal.toml"))
    token = "MODAL_TOKEN_ID" in os.environ or config.is_file()
    return Examined("Modal", token, "token found" if token else "installed, no token", "run: modal setup")


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
