"""The nouns of the grader: frozen records, no logic, no I/O.

Three families, in the order in which they arise:

* the manifest, as it is written (`Manifest` and its `...Spec`s), and what it means (`Assignment`);
* what a stage hands to the next one (`Submission`, `Build`, `Run`, `Verdict`);
* the result, as it is stored and shown (`Result` and its parts), from which the JSON Schema is generated.

Arrays are row-major. Sizes are in bytes and times in seconds unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

RESULT_SCHEMA: Literal["flashgrade/result/v1"] = "flashgrade/result/v1"

Status = Literal["pass", "fail", "skip", "error"]
Role = Literal["in", "out", "inout", "scalar", "stream"]
DType = Literal["float32", "float16", "bfloat16", "int32", "uint8"]
ScalarType = Literal["int", "int64", "size_t", "float", "double", "bool"]
DeviceName = Literal["cpu", "cuda"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every record."""


# --- the manifest, as written ---------------------------------------------------------------------


class EntrySpec(Record, frozen=True):
    """One `[[entries]]` table: a host function that the student writes."""

    name: str
    function: str
    args: tuple[str, ...]
    reference: str = ""  # function of reference.py; the entry's own name when empty


class CaseSpec(Record, frozen=True):
    """One `[[cases]]` table: one call of one entry."""

    name: str
    dims: dict[str, int]
    points: float
    entry: str = ""  # the first entry when empty
    inputs: str | dict[str, str] = "normal"  # one joint distribution, or one for each array
    scalars: dict[str, bool | int | float] = {}
    seed: int = 0
    hint: str = ""
    on: tuple[DeviceName, ...] = ()  # every device when empty


class CheckSpec(Record, frozen=True):
    """One `[[checks]]` table: a check to make, and what it is worth."""

    check: str
    points: float = 0.0
    hint: str = ""
    cases: tuple[str, ...] = ()  # every case when empty
    options: dict[str, bool | int | float | str] = {}


class ToleranceSpec(Record, frozen=True):
    """`[tolerance]`: the derived bound of an arithmetic, or plain `atol` and `rtol` with their source."""

    arithmetic: str = "float32"
    kappa: float = 2.0
    atol: float | None = None
    rtol: float | None = None


class Manifest(Record, frozen=True):
    """A whole `assignment.toml`."""

    title: str
    summary: str
    entries: tuple[EntrySpec, ...]
    cases: tuple[CaseSpec, ...]
    checks: tuple[CheckSpec, ...]
    file: str = "flash_attention.cu"
    tile: int = 32  # rows and columns of the tile that error maps draw
    tolerance: ToleranceSpec = ToleranceSpec()


class HiddenManifest(Record, frozen=True):
    """A whole `hidden.toml`: further cases that only an instructor's run grades."""

    cases: tuple[CaseSpec, ...]


# --- the manifest, as understood -------------------------------------------------------------------


class Parameter(Record, frozen=True):
    """One argument of an entry.

    `dims` are expressions over the case's dims (`("N", "d")`); `value` is the expression of a scalar.
    """

    name: str
    role: Role
    dtype: DType | ScalarType | Literal["stream"]
    dims: tuple[str, ...] = ()
    nullable: bool = False
    value: str = ""


class Entry(Record, frozen=True):
    """A host function that the student writes, with its parameters in order."""

    name: str
    function: str
    parameters: tuple[Parameter, ...]
    reference: str


class Case(Record, frozen=True):
    """One call of one entry, with everything resolved."""

    name: str
    entry: str
    dims: dict[str, int]
    inputs: str | dict[str, str]
    scalars: dict[str, bool | int | float]
    seed: int
    points: float
    hint: str
    on: tuple[DeviceName, ...]
    hidden: bool = False


class Assignment(Record, frozen=True):
    """An assignment, ready to grade. `version` is a hash of everything that can change a score."""

    slug: str
    folder: Path
    title: str
    summary: str
    file: str
    tile: int
    tolerance: ToleranceSpec
    entries: tuple[Entry, ...]
    cases: tuple[Case, ...]
    checks: tuple[CheckSpec, ...]
    version: str


# --- between the stages ------------------------------------------------------------------------------


class Submission(Record, frozen=True):
    """A student's file. `text` is decoded leniently; `data` is what was handed in, byte for byte."""

    path: Path
    name: str
    data: bytes
    text: str
    sha256: str


class Resources(Record, frozen=True):
    """What one kernel needs, as nvcc's ptxas reports it."""

    kernel: str
    registers: int
    spill_stores: int = 0
    spill_loads: int = 0
    shared_static: int = 0
    stack: int = 0


BuildStatus = Literal[
    "ok",
    "compile_error",
    "wrong_signature",
    "missing_function",
    "needs_gpu",
    "limit",  # a CUDA limit that nvcc enforces, such as 48 KB of static shared memory
    "timeout",
    "no_compiler",
    "grader_fault",
]


class CompilerMessage(Record, frozen=True):
    """One diagnostic of a compiler, in the student's own lines (1-based; 0: not in the student's file)."""

    severity: Literal["error", "warning", "note"]
    line: int
    column: int
    text: str


class Build(Record, frozen=True):
    """The outcome of compiling a submission on one device."""

    status: BuildStatus
    message: str = ""  # one line for the student; empty when all is well
    hint: str = ""
    messages: tuple[CompilerMessage, ...] = ()
    log: str = ""  # the compiler's own words, paths replaced by the student's file name
    duration: float = 0.0
    cached: bool = False
    compiler: str = ""
    library: Path | None = None
    resources: tuple[Resources, ...] = ()


RunStatus = Literal[
    "ok",
    "crash",  # a signal in host code, or one that the runtime could not pin on a kernel
    "illegal_access",  # a kernel touched memory that is not its own
    "barrier",  # not all threads reach a barrier or a warp collective
    "hang",  # a kernel that does not end
    "timeout",  # host code that does not end
    "launch_failed",  # CUDA refused or lost a launch
    "exit",  # the student's code ended the program
    "exception",  # a C++ exception left the entry
    "trap",  # assert() or __trap() in a kernel
    "unsupported",  # needs a real GPU
    "lost",  # the runner itself failed: the grader's fault
]


class Frame(Record, frozen=True):
    """A place in the student's source. `line` is 1-based; 0 when unknown."""

    file: str
    line: int
    function: str = ""


class Event(Record, frozen=True):
    """Something that the device saw while the student's code ran (an illegal access, a race ...)."""

    kind: str
    message: str  # one sentence, with the place in it
    severity: Literal["error", "warning", "advice"] = "error"
    kernel: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    where: Frame | None = None
    other: Frame | None = None  # the other access of a race, the barrier that the others wait at ...
    variable: str = ""
    count: int = 1
    case: str = ""  # the case it was seen in; a hidden case's events are the instructor's to read


class Launch(Record, frozen=True):
    """One kernel launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_dynamic: int
    duration: float


class Run(Record, frozen=True):
    """What one case did. Never encoded: `outputs` holds arrays.

    `outputs` maps an output's name to its array; `repeats` holds the outputs of further calls on the same
    inputs, each made under another order of threads and blocks where the device can choose one.
    """

    case: str
    status: RunStatus
    message: str = ""
    hint: str = ""
    outputs: Mapping[str, Any] = {}
    repeats: tuple[Mapping[str, Any], ...] = ()
    modified_inputs: tuple[str, ...] = ()
    overrun_buffers: tuple[str, ...] = ()  # buffers whose red zones were written
    events: tuple[Event, ...] = ()
    launches: tuple[Launch, ...] = ()
    peak_bytes: int = 0  # the most device memory that the entry held at once, beside its arguments
    leaked_bytes: int = 0  # device memory still held when the entry returned
    device_to_host_bytes: int = 0
    duration: float = 0.0
    stdout: str = ""
    stderr: str = ""


class Verdict(Record, frozen=True):
    """What a check says about one subject, before points are counted."""

    status: Status
    summary: str = ""
    hint: str = ""
    line: int = 0  # the student's line, 0 when there is none to name
    comparisons: tuple[Comparison, ...] = ()


# --- the result ------------------------------------------------------------------------------------


class Element(Record, frozen=True):
    """One element of an output. `bound` is the error that the tolerance allows there; `ratio` error/bound."""

    index: tuple[int, ...]
    got: float | None  # None: NaN
    expected: float
    bound: float
    ratio: float | None


class ErrorMap(Record, frozen=True):
    """An output seen from above: one character for each cell of `row_step` by `column_step` elements.

    `.` inside the bound, `1` outside, `2` outside 10 times, `3` outside 1000 times, `n` NaN or infinite,
    `u` never written. A cell shows the worst of its elements. Leading dimensions are folded into the rows.
    """

    rows: int
    columns: int
    row_step: int
    column_step: int
    tile: int
    cells: tuple[str, ...]


class Comparison(Record, frozen=True):
    """One output against its reference."""

    output: str
    shape: tuple[int, ...]
    elements: int
    outside: int  # elements outside the bound, NaN and unwritten ones included
    nonfinite: int
    unwritten: int
    used: float | None  # worst error / bound; None when something is not finite
    worst: Element | None
    samples: tuple[Element, ...]  # the few worst, for a table
    first_row: tuple[float | None, ...]  # at most 8 values
    first_row_expected: tuple[float, ...]
    pattern: str  # where the wrong elements are, in words; empty when there is no pattern
    bound: str  # how the bound came about, in words
    error_map: ErrorMap | None


class Finding(Record, frozen=True):
    """A verdict with its points. `case` is empty for a check of the submission as a whole.

    `assessed` is false where this device cannot judge: such points count neither for nor against.
    `because` names the check whose failure made this one pointless.
    """

    check: str
    title: str
    case: str
    status: Status
    points: float
    max_points: float
    summary: str
    hint: str = ""
    assessed: bool = True
    because: str = ""
    line: int = 0
    comparisons: tuple[Comparison, ...] = ()


class Diagnosis(Record, frozen=True):
    """A cause that explains failing cases."""

    cause: str
    title: str
    evidence: str
    hint: str
    cases: tuple[str, ...]
    line: int = 0


class Score(Record, frozen=True):
    """Points earned, points that this device could assess, and points that the assignment has."""

    earned: float
    assessed: float
    total: float


class CaseResult(Record, frozen=True):
    """A case as it was run."""

    name: str
    entry: str
    dims: dict[str, int]
    inputs: str
    seed: int
    hidden: bool
    points: float
    max_points: float
    status: Status
    run_status: RunStatus | Literal["not_run"]
    duration: float
    launches: tuple[Launch, ...] = ()
    peak_bytes: int = 0
    stdout: str = ""
    stderr: str = ""


class BuildResult(Record, frozen=True):
    """A build as it is stored."""

    status: BuildStatus
    message: str
    hint: str
    messages: tuple[CompilerMessage, ...]
    log: str
    duration: float
    cached: bool
    compiler: str
    resources: tuple[Resources, ...]


class DeviceInfo(Record, frozen=True):
    """Where the submission ran."""

    name: DeviceName
    title: str  # "CPU emulation of CUDA (2 threads)", "NVIDIA H200"
    place: str = "this machine"
    details: dict[str, str] = {}


class AssignmentInfo(Record, frozen=True):
    """Which assignment, in which version."""

    slug: str
    title: str
    version: str


class SubmissionInfo(Record, frozen=True):
    """Which file. `source` is the student's text, for reports that show guilty lines."""

    name: str
    sha256: str
    size: int
    source: str = ""


class Result(Record, frozen=True, kw_only=True):
    """Everything that a report needs, and everything that a regrade needs to be reproduced."""

    schema: Literal["flashgrade/result/v1"] = RESULT_SCHEMA
    assignment: AssignmentInfo
    submission: SubmissionInfo
    device: DeviceInfo
    score: Score
    needs_instructor: bool
    build: BuildResult
    findings: tuple[Finding, ...]
    diagnoses: tuple[Diagnosis, ...]
    cases: tuple[CaseResult, ...]
    events: tuple[Event, ...]
    versions: dict[str, str]
    timings: dict[str, float]  # seconds spent in each stage
    graded_at: str  # ISO 8601, UTC
