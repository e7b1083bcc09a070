"""Builders of realistic results, so that reports can be tested, and looked at, without grading anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from grader.records import (
    AssignmentInfo,
    BuildResult,
    CaseResult,
    Comparison,
    CompilerMessage,
    DeviceInfo,
    Diagnosis,
    Element,
    ErrorMap,
    Event,
    Finding,
    Frame,
    Launch,
    Resources,
    Result,
    Score,
    SubmissionInfo,
)

SOURCE = """\
// FlashAttention forward, one block per tile of queries.
#include <cuda_runtime.h>
#include <cstdio>
#include <math_constants.h>

#define BR 32
#define BC 32
#define D_MAX 128

// O = softmax(Q K^T / sqrt(d)) V, online: running maximum m_i, sum l_i, accumulator O_i.
__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O,
                                          int N, int d, float scale) {
    __shared__ float Ks[BC][D_MAX];
    __shared__ float Vs[BC][D_MAX];
    const int row = blockIdx.x * BR + threadIdx.x;
    if (row >= N) return;

    float q[D_MAX], acc[D_MAX];
    for (int k = 0; k < d; ++k) {
        q[k] = Q[row * d + k] * scale;
        acc[k] = 0.0f;
    }
    float m_i = -CUDART_INF_F;
    float l_i = 0.0f;

    for (int tile = 0; tile < (N + BC - 1) / BC; ++tile) {
        const int key = tile * BC + threadIdx.x;
        for (int k = 0; k < d; ++k) {
            Ks[threadIdx.x][k] = key < N ? K[key * d + k] : 0.0f;
            Vs[threadIdx.x][k] = key < N ? V[key * d + k] : 0.0f;
        }
        __syncthreads();

        for (int j = 0; j < BC && tile * BC + j < N; ++j) {
            float s = 0.0f;
            for (int k = 0; k < d; ++k) s += q[k] * Ks[j][k];
            const float m_new = fmaxf(m_i, s);
            const float rescale = expf(m_i - m_new);
            const float p = expf(s - m_new);
            l_i = l_i * rescale + p;
            for (int k = 0; k < d; ++k) acc[k] = acc[k] * rescale + p * Vs[j][k];
            m_i = m_new;
        }
        __syncthreads();
    }
    for (int k = 0; k < d; ++k) O[row * d + k] = acc[k] / l_i;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d) {
    const dim3 grid((N + BR - 1) / BR);
    flash_attn_forward_kernel<<<grid, BR>>>(d_Q, d_K, d_V, d_O, N, d, 1.0f / sqrtf(d));
    cudaDeviceSynchronize();
}

int main() {
    printf("run me through the grader\\n");
    return 0;
}
"""

GUILTY = 16  # the early return
TILE = 32
_BOUND = (
    "For each element: 2 (kappa) x 2^-24 x (the sum of |p| |v| over the keys, times their roundings). "
    "Here 8.1e-07 to 2.2e-06, median 1.4e-06."
)
_TITLES = {
    "compiles": "The file compiles and has the entry that the assignment asks for.",
    "runs": "The kernel runs to its end.",
    "written": "Every element of the output is written.",
    "finite": "No element of the output is NaN or infinite.",
    "close": "Every element is within the bound of the float64 reference.",
    "inputs_untouched": "The inputs are as they were.",
    "deterministic": "The same inputs give the same output, in any order of threads and blocks.",
    "workspace": "Extra device memory grows with N, not with N squared.",
    "races": "No two threads meet at one address without a barrier between them.",
    "speed": "The kernel is faster than attention through cuBLAS.",
}
CASES = (
    ("one key", 1, 64, "normal", 4.0),
    ("less than a tile", 17, 40, "normal", 4.0),
    ("one row short of a tile", 31, 64, "normal", 4.0),
    ("one tile", 32, 64, "normal", 6.0),
    ("one row more than a tile", 33, 64, "normal", 6.0),
    ("two tiles", 64, 64, "normal", 6.0),
    ("ragged tail", 113, 64, "normal", 6.0),
    ("ragged tail, wide heads", 239, 128, "normal", 6.0),
    ("scores increase", 113, 64, "increasing", 6.0),
    ("scores fall by 400", 113, 64, "decreasing_400", 6.0),
    ("equal scores", 64, 80, "equal", 4.0),
    ("one key takes all", 128, 64, "sink_key", 6.0),
    ("one thousand keys", 1000, 64, "normal", 10.0),
)


def error_map(rows: int, columns: int, wrong: Callable[[int, int], str], *, most: int = 64) -> ErrorMap:
    """Return a map whose cell at (row, column) of the output is `wrong(row, column)`."""
    row_step, column_step = -(-rows // most), -(-columns // most)
    cells = tuple(
        "".join(wrong(row, column) for column in range(0, columns, column_step))
        for row in range(0, rows, row_step)
    )
    return ErrorMap(rows, columns, row_step, column_step, TILE, cells)


def comparison(
    N: int, d: int, *, wrong: Callable[[int, int], str] | None = None, pattern: str = ""
) -> Comparison:
    """Return the comparison of an output O[N, d], right everywhere unless `wrong` says otherwise."""
    expected = tuple(round(0.41 * (-1) ** k / (k + 1) + 0.01 * k, 6) for k in range(min(8, d)))
    if wrong is None:
        worst = Element((N - 1, d // 2), 0.398103, 0.398102, 1.3e-6, 0.31)
        return Comparison(
            "O", (N, d), N * d, 0, 0, 0, 0.31, worst, (worst,), expected, expected, "", _BOUND, None
        )
    seen = [(r, c, wrong(r, c)) for r in range(N) for c in range(d)]
    bad = [(r, c, kind) for r, c, kind in seen if kind != "."]
    nonfinite = sum(kind == "n" for *_, kind in bad)
    unwritten = sum(kind == "u" for *_, kind in bad)
    factor = {"1": 4.2, "2": 91.0, "3": 12345.0}
    samples = tuple(
        Element(
            (r, c),
            None if kind in "nu" else 0.398102 + factor[kind] * 1.4e-6,
            0.398102,
            1.4e-6,
            factor.get(kind),
        )
        for r, c, kind in sorted(bad, key=lambda item: item[2], reverse=True)[:5]
    )
    used = None if nonfinite or unwritten else max(factor[kind] for *_, kind in bad)
    first = tuple(
        None if wrong(0, k) in "nu" else x + (0.0 if wrong(0, k) == "." else 0.0146)
        for k, x in enumerate(expected)
    )
    return Comparison(
        "O",
        (N, d),
        N * d,
        len(bad),
        nonfinite,
        unwritten,
        used,
        samples[0],
        samples,
        first,
        expected,
        pattern,
        _BOUND,
        error_map(N, d, wrong),
    )


def in_last_tile(N: int, kind: str = "2") -> Callable[[int, int], str]:
    """Return the error map of a kernel that gets the last, partial tile of rows wrong."""
    first = N // TILE * TILE
    return lambda row, column: kind if row >= first else "."


def finding(
    check: str, case: str, status: str, points: float, most: float, summary: str = "", **more: object
) -> Finding:
    """Return a finding with the title that its check has."""
    return Finding(check, _TITLES.get(check, check), case, status, points, most, summary, **more)  # type: ignore[arg-type]


def case_result(name: str, N: int, d: int, inputs: str, most: float, **more: object) -> CaseResult:
    """Return a case that passed, unless `more` says otherwise."""
    launch = Launch("flash_attn_forward_kernel", (-(-N // 32), 1, 1), (32, 1, 1), 0, 0.0012)
    fields: dict[str, object] = {
        "points": most,
        "status": "pass",
        "run_status": "ok",
        "duration": 2e-5 * N,
        "launches": (launch,),
        "hidden": False,
    } | more
    return CaseResult(
        name=name,
        entry="forward",
        dims={"N": N, "d": d},
        inputs=inputs,
        seed=20 + N,
        max_points=most,
        **fields,
    )  # type: ignore[arg-type]


def passing_findings(name: str, N: int, d: int, most: float) -> list[Finding]:
    """Return the chain of findings of a case that passes."""
    return [
        finding("runs", name, "pass", 0, 0, "ran to its end"),
        finding("written", name, "pass", 0, 0, f"all {N * d} elements"),
        finding("finite", name, "pass", 0, 0),
        finding("close", name, "pass", most, most, "0.31 of the bound", comparisons=(comparison(N, d),)),
    ]


def failing_findings(
    name: str, N: int, d: int, most: float, shown: Comparison, hint: str = ""
) -> list[Finding]:
    """Return the chain of findings of a case whose output is outside the bound."""
    worst = shown.worst
    assert worst is not None
    place = ", ".join(map(str, worst.index))
    got = "NaN" if worst.got is None else f"{worst.got:.4f}"
    summary = (
        f"{shown.outside} of {shown.elements} elements are outside the bound; worst O[{place}]: got {got}, "
        f"expected {worst.expected:.4f}" + (f" ({worst.ratio:.0f}\u00d7 the bound)" if worst.ratio else "")
    )
    return [
        finding("runs", name, "pass", 0, 0),
        finding("written", name, "pass", 0, 0),
        finding("finite", name, "pass", 0, 0),
        finding("close", name, "fail", 0, most, summary, hint=hint, comparisons=(shown,)),
    ]


def wide_findings(*, earned: bool = True) -> list[Finding]:
    """Return the findings about the submission as a whole, and one that a CPU cannot assess."""
    status, points = ("pass", 1.0) if earned else ("skip", 0.0)
    more = {} if earned else {"because": "close"}
    return [
        finding(
            "inputs_untouched", "", status, 4 * points, 4, "" if earned else "because close fails", **more
        ),
        finding("deterministic", "", status, 8 * points, 8, "" if earned else "because close fails", **more),
        finding(
            "workspace",
            "",
            status,
            8 * points,
            8,
            "0 bytes at N=1000" if earned else "because close fails",
            **more,
        ),
        finding("speed", "", "skip", 0, 6, "speed is measured on a GPU; this was a CPU", assessed=False),
    ]


def result(findings: list[Finding], cases: list[CaseResult], **more: object) -> Result:
    """Return a result with the score that its findings add up to."""
    assessed = [f for f in findings if f.assessed]
    fields: dict[str, object] = {
        "assignment": AssignmentInfo(
            "03_flash_attention", "FlashAttention: the forward pass", "9f31c02a77de"
        ),
        "submission": SubmissionInfo("flash_attention.cu", "5d41402abc4b2a76" * 4, len(SOURCE), SOURCE),
        "device": DeviceInfo(
            "cpu",
            "CPU emulation of CUDA (2 threads)",
            details={"processor": "x86-64, 2 cores", "memory": "8 GB"},
        ),
        "score": Score(
            sum(f.points for f in assessed),
            sum(f.max_points for f in assessed),
            sum(f.max_points for f in findings),
        ),
        "needs_instructor": False,
        "build": BuildResult("ok", "", "", (), "", 0.62, False, "g++ 12.2.0", ()),
        "findings": tuple(findings),
        "diagnoses": (),
        "cases": tuple(cases),
        "events": (),
        "versions": {"flashgrade": "0.1.0", "numpy": "2.3.5", "python": "3.11.2", "runtime": "1"},
        "timings": {"build": 0.62, "run": 0.71, "check": 0.18, "diagnose": 0.09, "total": 1.61},
        "graded_at": "2026-11-21T02:14:09Z",
    } | more
    return Result(**fields)  # type: ignore[arg-type]


def all_pass() -> Result:
    """Everything right, on a CPU: full marks for what could be assessed."""
    findings = [finding("compiles", "", "pass", 0, 0)]
    cases = []
    for name, N, d, inputs, most in CASES:
        findings += passing_findings(name, N, d, most)
        cases.append(case_result(name, N, d, inputs, most))
    return result(findings + wide_findings(), cases)


def ragged_tail() -> Result:
    """Mixed: the last, partial tile is wrong wherever there is one; one case has another fault."""
    findings = [finding("compiles", "", "pass", 0, 0)]
    cases, failing = [], []
    for name, N, d, inputs, most in CASES:
        wrong, pattern, hint = None, "", ""
        if N % TILE and N > 1:
            wrong = in_last_tile(N)
            first = N // TILE * TILE
            rows = f"rows {first} to {N - 1}" if first < N - 1 else f"row {first}"
            pattern = f"All of them are in {rows}, the last, partial tile of 32."
            failing.append(name)
        elif name == "equal scores":
            wrong = lambda row, column: "n" if row == column else "3" if (row + column) % 7 == 0 else "."  # noqa: E731
            pattern = "They lie on the diagonal and on every seventh line beside it."
            hint = "When all scores are equal, O is the mean of V: print one row and compare."
        if wrong is None:
            findings += passing_findings(name, N, d, most)
            cases.append(case_result(name, N, d, inputs, most))
        else:
            findings += failing_findings(
                name, N, d, most, comparison(N, d, wrong=wrong, pattern=pattern), hint
            )
            cases.append(case_result(name, N, d, inputs, most, points=0.0, status="fail"))
    diagnosis = Diagnosis(
        "returned_before_barrier",
        "Rows past N return before they load their share of the tile",
        f"They leave at line {GUILTY}, so lines 36 and 41 read shared memory that nobody wrote.",
        "Keep every thread alive until the last barrier; guard the store instead.",
        tuple(failing),
        GUILTY,
    )
    events = (
        Event(
            "exited_before_barrier",
            "15 threads of block (3, 0, 0) returned before the barrier at line 32.",
            "warning",
            "flash_attn_forward_kernel",
            (3, 0, 0),
            (17, 0, 0),
            Frame("flash_attention.cu", GUILTY),
            Frame("flash_attention.cu", 32),
        ),
        Event(
            "bank_conflict",
            "Ks[j][k] is read by one warp in 32 ways: pad its rows by one float.",
            "advice",
            "flash_attn_forward_kernel",
            where=Frame("flash_attention.cu", 36),
            variable="Ks",
            count=4096,
        ),
    )
    return result(findings + wide_findings(earned=True), cases, diagnoses=(diagnosis,), events=events)


def compile_error() -> Result:
    """A missing semicolon: nothing could run."""
    source = SOURCE.replace("float l_i = 0.0f;", "float l_i = 0.0f")
    line = source[: source.index("float l_i")].count("\n") + 1
    messages = (
        CompilerMessage("error", line, 21, "expected ',' or ';' before 'for'"),
        CompilerMessage("error", line + 16, 13, "'l_i' was not declared in this scope"),
        CompilerMessage("note", line, 11, "declared here"),
        CompilerMessage("warning", 15, 15, "unused variable 'row' [-Wunused-variable]"),
    )
    log = "".join(f"flash_attention.cu:{m.line}:{m.column}: {m.severity}: {m.text}\n" for m in messages)
    why = f"error at line {line}: expected ',' or ';' before 'for'"
    findings = [
        finding(
            "compiles",
            "",
            "fail",
            0,
            0,
            why,
            line=line,
            hint=f"Look at the end of line {line}, before the 'for'.",
        )
    ]
    cases = []
    for name, N, d, inputs, most in CASES:
        findings.append(
            finding("runs", name, "skip", 0, most, "because the file does not compile", because="compiles")
        )
        cases.append(
            case_result(
                name,
                N,
                d,
                inputs,
                most,
                points=0.0,
                status="skip",
                run_status="not_run",
                launches=(),
                duration=0.0,
            )
        )
    build = BuildResult("compile_error", why, "", messages, log, 0.41, False, "g++ 12.2.0", ())
    return result(
        findings + wide_findings(earned=False),
        cases,
        build=build,
        submission=SubmissionInfo("flash_attention.cu", "0f" * 32, len(source), source),
    )


def needs_gpu() -> Result:
    """Inline PTX, which no CPU runs: nothing is assessed and nothing is lost."""
    why = "needs a GPU: line 36 uses inline PTX"
    findings = [finding("compiles", "", "skip", 0, 0, why, assessed=False)]
    cases = []
    for name, N, d, inputs, most in CASES:
        findings.append(finding("runs", name, "skip", 0, most, why, assessed=False, because="compiles"))
        cases.append(
            case_result(
                name, N, d, inputs, most, points=0.0, status="skip", run_status="not_run", launches=()
            )
        )
    for check, most in (("deterministic", 8), ("workspace", 8), ("speed", 6)):
        findings.append(finding(check, "", "skip", 0, most, why, assessed=False))
    build = BuildResult(
        "needs_gpu",
        "This file uses inline PTX (line 36), which only a GPU can run.",
        "grade it with --on cuda, or with --on modal",
        (),
        "",
        0.02,
        False,
        "",
        (),
    )
    return result(findings, cases, build=build)


def grader_error() -> Result:
    """There is no compiler: the grader's fault, which costs nothing."""
    why = "no C++17 compiler found: neither $CXX, g++ nor clang++ is on PATH"
    findings = [
        finding(
            "compiles",
            "",
            "error",
            0,
            0,
            why,
            assessed=False,
            hint="install g++ 9 or later, or clang++ 10 or later",
        )
    ]
    cases = []
    for name, N, d, inputs, most in CASES[:4]:
        findings.append(finding("runs", name, "error", 0, most, why, assessed=False))
        cases.append(
            case_result(
                name, N, d, inputs, most, points=0.0, status="error", run_status="not_run", launches=()
            )
        )
    build = BuildResult("no_compiler", why, "install g++ 9 or later", (), "", 0.0, False, "", ())
    return result(findings, cases, build=build, needs_instructor=True)


HOSTILE = (
    "</style></pre><script>alert(1)</script>{{ 7*7 }}{% raw %}\x1b[31mred\x1b]0;title\x07\u202eevil\u2066"
    "\x00\u200b<img src=x onerror=alert(2)>\"'`\r"
)


def hostile() -> Result:
    """A student's text tries everything, everywhere it can reach."""
    bad = HOSTILE
    base = ragged_tail()
    events = (
        Event(bad, bad, "error", bad, (0, 0, 0), (1, 0, 0), Frame(bad, 3, bad), Frame(bad, 5), bad, 3),
        Event("printf", bad, "warning", bad, where=Frame(bad, 999999)),
    )
    messages = (CompilerMessage("warning", 4, 1, bad), CompilerMessage("note", 100000, 1, bad))
    return replace(
        base,
        submission=SubmissionInfo(bad, "5d" * 32, 3, f"// {bad}\n" * 40 + "x" * 100_000 + "\n/* " + bad),
        device=DeviceInfo("cpu", bad, bad, {bad: bad}),
        build=replace(base.build, messages=messages, log=bad * 10, compiler=bad, hint=bad, message=bad),
        findings=tuple(
            replace(f, summary=f.summary + bad, hint=bad, line=f.line or 2) for f in base.findings
        ),
        diagnoses=tuple(replace(d, title=bad, evidence=bad, hint=bad) for d in base.diagnoses),
        cases=tuple(replace(case, stdout=bad * 50, stderr=bad, inputs=bad) for case in base.cases),
        events=events,
        versions={**base.versions, bad: bad},
        timings={**base.timings, bad: 1.0},
    )


def sixty_cases() -> Result:
    """Sixty cases of scattered errors, the largest that a page has to hold."""
    findings = [finding("compiles", "", "pass", 0, 0)]
    cases = []
    scattered = lambda row, column: "123nu."[(row * 7919 + column * 104729 + row * column) % 6]  # noqa: E731
    shown = comparison(128, 64, wrong=scattered, pattern="There is no pattern in their places.")
    for index in range(60):
        name = f"case {index:02d}"
        findings += failing_findings(name, 128, 64, 1.0, shown)
        cases.append(
            case_result(name, 128, 64, "normal", 1.0, points=0.0, status="fail", stdout="max |diff| 0.5\n")
        )
    source = SOURCE * 40
    return result(
        findings, cases, submission=SubmissionInfo("flash_attention.cu", "ab" * 32, len(source), source)
    )


def tiny() -> Result:
    """One case of one element, wrong."""
    shown = comparison(1, 1, wrong=lambda row, column: "3", pattern="It is the only element.")
    findings = [finding("compiles", "", "pass", 0, 0), *failing_findings("one key", 1, 1, 1.0, shown)]
    return result(findings, [case_result("one key", 1, 1, "normal", 1.0, points=0.0, status="fail")])


def races() -> Result:
    """A missing barrier: two lines, two threads, one variable."""
    message = (
        "Thread (5, 0, 0) writes Ks[5][0] at line 29 while thread (0, 0, 0) may still read it at line 36."
    )
    hint = "Put a __syncthreads() at the end of the loop over tiles, before the next tile is loaded."
    event = Event(
        "race",
        message,
        "error",
        "flash_attn_forward_kernel",
        (0, 0, 0),
        (5, 0, 0),
        Frame("flash_attention.cu", 29),
        Frame("flash_attention.cu", 36),
        "Ks",
        1984,
        "one row more than a tile",
    )
    findings = [f for f in all_pass().findings if f.check != "deterministic"]
    findings.insert(1, finding("races", "", "fail", 0, 10, message, hint=hint, line=29))
    cases = list(all_pass().cases)
    resources = (Resources("flash_attn_forward_kernel", 128, 24, 24, 32768, 1024),)
    base = result(findings, cases, events=(event,))
    return replace(base, build=replace(base.build, resources=resources))


def crash() -> Result:
    """Some cases end in an illegal access, one hangs; the code printed something first."""
    findings = [finding("compiles", "", "pass", 0, 0)]
    cases, events = [], []
    for name, N, d, inputs, most in CASES:
        if N > 100:
            where = "thread (17, 0, 0) of block (3, 0, 0)"
            message = (
                f"{where} reads 4 bytes at line 20, {4 * N} bytes past the end of Q ({N * d * 4} bytes)."
            )
            findings.append(
                finding(
                    "runs",
                    name,
                    "fail",
                    0,
                    most,
                    message,
                    line=20,
                    hint="Compare the row with N before you read Q.",
                )
            )
            findings += [
                finding(c, name, "skip", 0, 0, "because runs fails", because="runs")
                for c in ("written", "finite", "close")
            ]
            cases.append(
                case_result(
                    name,
                    N,
                    d,
                    inputs,
                    most,
                    points=0.0,
                    status="fail",
                    run_status="illegal_access",
                    stdout="launching 4 blocks\n",
                    stderr="CUDA error: an illegal memory access was encountered\n",
                )
            )
            events.append(
                Event(
                    "illegal_access",
                    message,
                    "error",
                    "flash_attn_forward_kernel",
                    (3, 0, 0),
                    (17, 0, 0),
                    Frame("flash_attention.cu", 20),
                    None,
                    "Q",
                    1,
                    name,
                )
            )
        else:
            findings += passing_findings(name, N, d, most)
            cases.append(case_result(name, N, d, inputs, most))
    return result(findings + wide_findings(), cases, events=tuple(events))


def hidden() -> Result:
    """Hidden cases fail like a visible one, and two more fail by themselves."""
    base = ragged_tail()
    secret = "SECRET-4242"
    findings, cases = list(base.findings), list(base.cases)
    for name in ("hidden tail", "hidden heads"):
        shown = comparison(77, 64, wrong=in_last_tile(77), pattern=f"rows 64 to 76 {secret}")
        findings += failing_findings(name, 77, 64, 5.0, shown, hint=secret)
        cases.append(
            case_result(
                name,
                77,
                64,
                secret,
                5.0,
                points=0.0,
                status="fail",
                hidden=True,
                stdout=secret,
                stderr=secret,
            )
        )
    findings += passing_findings("hidden pass", 78, 64, 5.0)
    cases.append(case_result("hidden pass", 78, 64, secret, 5.0, hidden=True, stdout=secret))
    diagnosis = replace(
        base.diagnoses[0], cases=(*base.diagnoses[0].cases, "hidden tail"), evidence=f"at N=77 {secret}"
    )
    event = Event("race", f"{secret} in a hidden case", "warning", case="hidden tail")
    more = result(findings, cases)
    return replace(more, diagnoses=(diagnosis,), events=(*base.events, event))


def empty() -> Result:
    """A result with nothing in it but its frame."""
    return result([], [])


SAMPLES: dict[str, Callable[[], Result]] = {
    function.__name__: cache(function)  # records are frozen: one of each is enough
    for function in (
        all_pass,
        ragged_tail,
        compile_error,
        needs_gpu,
        grader_error,
        hostile,
        sixty_cases,
        tiny,
        races,
        crash,
        hidden,
        empty,
    )
}
