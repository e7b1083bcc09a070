"""Checked mode says nothing about right kernels, and finds planted faults at their lines.

The faults are data (`planted_faults.py`). All of one base are compiled as one file, each in a namespace of
its own, and each is run in a child process of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader import course, emulator, jobs, trampoline
from grader.emulator import rewrite, symbols, toolchain
from grader.records import Case, Frame, Run
from tests.planted_faults import FAULTS, Fault

HERE = Path(__file__).parent
SOURCE = "faults.cu"
STUDENT = "flash_attention.cu"
RIGHT = sorted((HERE / "submissions").glob("full_*.cu"))
SOLUTION = HERE.parent / "solutions" / "03_flash_attention" / STUDENT
BASES = sorted({fault.base for fault in FAULTS})
COMPILERS = [
    pytest.param(
        name, marks=[] if shutil.which(name) else pytest.mark.skip(reason=f"{name} is not installed")
    )
    for name in ("g++", "clang++")
]

DRIVER = """
import ctypes, json, os, sys
job = json.load(open("job.json"))
library = ctypes.CDLL(os.path.abspath("kernel.so"))
library.grader_rt_begin.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_int]
library.grader_rt_alloc.restype = ctypes.c_void_p
library.grader_rt_alloc.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
for index, (N, d) in enumerate(job):
    if os.fork() == 0:
        events = os.open(f"{index}.events", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        library.grader_rt_begin(events, 1, 0.5, 0)
        buffers = [library.grader_rt_alloc(4 * N * d, name) for name in (b"Q", b"K", b"V", b"O")]
        for buffer in buffers[:3]:
            values = (ctypes.c_float * (N * d))(*(i * 37 % 101 / 101 for i in range(N * d)))
            ctypes.memmove(buffer, values, 4 * N * d)
        getattr(library, f"call_{index}")(*(ctypes.c_void_p(buffer) for buffer in buffers), N, d)
        library.grader_rt_end()
        os._exit(0)
    os.wait()
"""


def build(compiler: str, text: str, source: str, folder: Path, more: str = "") -> Path:
    """Compile a `.cu` as checked mode does; `more` is appended after it was rewritten."""
    path = shutil.which(compiler)
    assert path
    tools = toolchain._examined(path)
    assert tools
    folder.mkdir(parents=True, exist_ok=True)
    rewritten = rewrite.rewrite(text)
    assert not rewritten.unsupported
    (folder / source).write_text(rewritten.text + ("" if more else "\n"))
    (folder / "whole.cu").write_text(more or f'#include "{source}"\n')
    runtime, _ = toolchain.prepared(tools, text, "checked")
    flags = emulator.compile_flags("checked", tools.family)
    for command in (
        [path, *flags, "-w", "-c", "-x", "c++", "whole.cu", "-o", "kernel.o"],
        [path, "-shared", "-Wl,-z,defs", "kernel.o", str(runtime), "-pthread", "-ldl", "-o", "kernel.so"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
    return folder / "kernel.so"


# --- right kernels ---------------------------------------------------------------------------------


def run_checked(compiler: str, path: Path, sizes: Sequence[tuple[int, int]], folder: Path) -> list[Run]:
    """Run a submission of assignment 03 in checked mode."""
    assignment = course.load(HERE.parent / "assignments" / "03_flash_attention")
    text = path.read_text(encoding="utf-8")
    made = trampoline.generate(assignment.entries, STUDENT, text)
    library = build(compiler, text, STUDENT, folder / "build", made.text)
    generator = np.random.default_rng(0)
    calls = []
    for N, d in sizes:
        case = Case(f"{N}x{d}", assignment.entries[0].name, {"N": N, "d": d}, "normal", {}, 0, 1, "", ())
        arrays = {name: generator.standard_normal((N, d), dtype=np.float32) for name in "QKV"}
        calls.append(jobs.Call(case, assignment.entries[0], 0, arrays, 1, 30, 20))

    def locate(counters: Sequence[int]) -> Mapping[int, Frame]:
        return symbols.locate(library, counters, STUDENT)

    return jobs.run(calls, library, folder / "run", workers=1, locate=locate)


# clang++ sees one kernel of each sort; all of them with it take as long as all other tests together.
SORTS = ("full_block_2d", "full_extern_shared", "full_float4_loads", "full_warp_per_row_shuffles")
PAIRS = [(compiler, path) for compiler in ("g++", "clang++") for path in [*RIGHT, SOLUTION]]


@pytest.mark.parametrize(
    ("compiler", "path"),
    [
        pytest.param(compiler, path, id=f"{path.stem}-{compiler}")
        for compiler, path in PAIRS
        if shutil.which(compiler) and (compiler == "g++" or path.stem in SORTS or path == SOLUTION)
    ],
)
def test_nothing_is_said_about_a_right_kernel(compiler: str, path: Path, tmp_path: Path) -> None:
    """Whole and ragged tiles, head dimensions on both sides of a warp: no event of any kind."""
    for run in run_checked(compiler, path, [(33, 64), (113, 32)], tmp_path):
        assert run.status == "ok", run.message
        assert [event.message for event in run.events] == []


# --- planted faults --------------------------------------------------------------------------------


def planted(fault: Fault) -> str:
    """Return the text of the base with its fault in it."""
    text = (HERE / "faults" / f"{fault.base}.cu").read_text(encoding="utf-8")
    assert fault.find in text, f"{fault.name}: `{fault.find}` is not in {fault.base}.cu"
    return text.replace(fault.find, fault.replace)


def marked_line(text: str, marker: str) -> int:
    lines = [
        number for number, line in enumerate(text.split("\n"), 1) if line.rstrip().endswith(f"// @{marker}")
    ]
    assert len(lines) == 1, f"// @{marker} is on lines {lines}"
    return lines[0]


class Caught:
    """What checked mode said about every fault of one base, and, under -1, about the base itself."""

    def __init__(self, compiler: str, base: str, folder: Path) -> None:
        faults = [fault for fault in FAULTS if fault.base == base]
        right = (HERE / "faults" / f"{base}.cu").read_text(encoding="utf-8")
        texts = [planted(fault) for fault in faults] + [right]
        whole, self.lines = "", list[int]()
        for index, text in enumerate(texts):
            self.lines.append(whole.count("\n") + 1)  # lines before the text
            whole += f"namespace fault_{index} {{\n{text}\n}}\n"
            whole += f'extern "C" __attribute__((visibility("default"))) void call_{index}'
            whole += "(const float* Q, const float* K, const float* V, float* O, int N, int d)"
            whole += f" {{ fault_{index}::run(Q, K, V, O, N, d); }}\n"
        library = build(compiler, whole, SOURCE, folder)
        sizes = [(fault.N, fault.d) for fault in faults] + [(97, 32)]
        (folder / "job.json").write_text(json.dumps(sizes))
        subprocess.run([sys.executable, "-I", "-S", "-c", DRIVER], cwd=folder, check=True, timeout=120)
        raw = [self._read(folder / f"{index}.events") for index in range(len(texts))]
        counters = {
            int(event[key], 16)
            for events in raw
            for event in events
            for key in ("pc", "other_pc")
            if event[key]
        }
        frames = symbols.locate(library, sorted(counters), SOURCE)
        self.events = dict(
            zip(
                [*faults, None],
                [self._placed(i, events, frames) for i, events in enumerate(raw)],
                strict=True,
            )
        )

    @staticmethod
    def _read(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    def _placed(
        self, index: int, events: list[dict[str, Any]], frames: Mapping[int, Frame]
    ) -> list[dict[str, Any]]:
        for event in events:
            for key, name in (("pc", "line"), ("other_pc", "other_line")):
                frame = frames.get(int(event[key], 16)) if event[key] else None
                event[name] = frame.line - self.lines[index] if frame else 0
        return events


@pytest.fixture(scope="module")
def caught(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Caught]:
    """Every base with all of its faults, built and run with every compiler, two at a time."""
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    wanted = [(compiler, base) for compiler in compilers for base in BASES]
    folder = tmp_path_factory.mktemp("faults")
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda key: Caught(*key, folder / f"{key[0]}-{key[1]}"), wanted)
    return dict(zip(wanted, made, strict=True))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("base", BASES)
def test_nothing_is_said_about_the_bases(
    caught: dict[tuple[str, str], Caught], compiler: str, base: str
) -> None:
    """The kernels that the faults are planted in are right."""
    assert [event["message"] for event in caught[compiler, base].events[None]] == []


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.base}: {fault.name}")
def test_a_planted_fault_is_caught_at_its_line(
    caught: dict[tuple[str, str], Caught], compiler: str, fault: Fault
) -> None:
    """An event of the fault's kind names the fault's line, and the events are few."""
    if fault.only not in ("", compiler):
        pytest.skip(f"{compiler} does not let it be seen")
    events = caught[compiler, fault.base].events[fault]
    told = [(event["kind"], event["line"], event["other_line"], event["message"]) for event in events]
    line = 0 if fault.line == "*" else marked_line(planted(fault), fault.line)
    right_kind = [event for event in events if event["kind"] == fault.kind]
    assert right_kind, told
    assert any(not line or line in (event["line"], event["other_line"]) for event in right_kind), (line, told)
    assert len(events) <= 10, told
