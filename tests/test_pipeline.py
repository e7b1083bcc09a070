"""From an assignment of one's own to a result: every kind of argument, several entries, devices, faults."""

from pathlib import Path

import msgspec
import pytest

from grader import course, devices, pipeline, submission
from grader.errors import GraderError

MANIFEST = """\
title = "Every kind of argument"
summary = "Two entries that use whatever a manifest can ask for."
tile = 4

[[entries]]
name = "blend"
function = "blend"
args = ["X: in float32[N, d]", "mask: in uint8[N]?", "rows: in int32[N]", "Y: out float32[N, d]",
        "sums: inout float32[N]", "N: int", "d: size_t", "total: int64 = N*d", "alpha: float = 1/sqrt(d)",
        "beta: double = 0.5", "negate: bool", "stream: stream"]

[[entries]]
name = "twice"
function = "twice"
args = ["X: in float32[N]", "Y: out float32[N]", "N: int"]

[tolerance]
atol = 1e-5

[[cases]]
name = "with a mask"
dims = {N = 7, d = 3}
scalars = {negate = true}
inputs = {X = "normal", mask = "mask", sums = "ones"}
points = 1

[[cases]]
name = "without a mask"
dims = {N = 5, d = 2}
scalars = {negate = false}
inputs = {mask = "null"}
points = 2

[[cases]]
name = "nothing at all"
dims = {N = 0, d = 2}
scalars = {negate = false}
points = 4

[[cases]]
name = "the other entry"
entry = "twice"
dims = {N = 9}
points = 8

[[cases]]
name = "on a GPU only"
entry = "twice"
dims = {N = 9}
points = 16
on = ["cuda"]

[[checks]]
check = "compiles"
[[checks]]
check = "runs"
[[checks]]
check = "written"
[[checks]]
check = "finite"
[[checks]]
check = "close"
[[checks]]
check = "inputs_untouched"
points = 32
[[checks]]
check = "workspace"
points = 64
options = { limit = "0" }
cases = ["the other entry"]
"""

REFERENCE = """\
import numpy as np

from grader.numerics import exact


def blend(X, mask, rows, sums, N, d, total, alpha, beta, negate):
    assert total == N * d
    visible = np.ones(N) if mask is None else mask != 0
    Y = (-1 if negate else 1) * alpha * X * np.asarray(visible, float)[:, None] + beta * rows[:, None]
    return {"Y": exact(Y), "sums": exact(sums + Y.sum(axis=1))}


def twice(X, N):
    return {"Y": exact(2 * X)}
"""

SOURCE = """\
#include <cuda_runtime.h>

__global__ void blend_kernel(const float* X, const unsigned char* mask, const int* rows, float* Y,
                             float* sums, int N, int d, float alpha, float beta, float sign) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    for (int c = 0; c < d; c++) {
        float y = (mask == nullptr || mask[i] ? sign * alpha * X[i * d + c] : 0.0f) + beta * rows[i];
        Y[i * d + c] = y;
        sums[i] += y;
    }
}

void blend(const float* X, const unsigned char* mask, const int* rows, float* Y, float* sums, int N, size_t d,
           long long total, float alpha, double beta, bool negate, cudaStream_t stream) {
    if (total == 0) return;
    blend_kernel<<<(N + 31) / 32, 32, 0, stream>>>(X, mask, rows, Y, sums, N, (int)d, alpha, (float)beta,
                                                   negate ? -1.0f : 1.0f);
}

__global__ void twice_kernel(float* X, float* Y, int N) {
    if (threadIdx.x < N) Y[threadIdx.x] = 2 * X[threadIdx.x];
}

namespace mine {
void twice(float* X, float* Y, int N) { twice_kernel<<<1, 32>>>(X, Y, N); }
}
"""


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course") / "assignments" / "09_arguments"
    folder.mkdir(parents=True)
    (folder / "assignment.toml").write_text(MANIFEST)
    (folder / "reference.py").write_text(REFERENCE)
    return course.load(folder)


@pytest.fixture(scope="module")
def device():
    return devices.pick("cpu")


def grade(assignment, device, source):
    return pipeline.grade(
        assignment, submission.from_bytes(source.encode(), Path("flash_attention.cu")), device
    )


def failing(result):
    return {(finding.check, finding.case) for finding in result.findings if finding.status == "fail"}


def test_every_kind_of_argument_reaches_the_function_and_comes_back(assignment, device):
    result = grade(assignment, device, SOURCE)
    assert failing(result) == set()
    score = result.score
    assert (score.earned, score.assessed, score.total) == (111, 111, 127)


def test_what_another_device_grades_is_not_assessed_and_says_so(assignment, device):
    result = grade(assignment, device, SOURCE)
    (finding,) = [finding for finding in result.findings if finding.case == "on a GPU only"]
    assert (finding.status, finding.assessed, finding.max_points) == ("skip", False, 16)
    assert "cuda" in finding.summary
    assert next(case for case in result.cases if case.name == "on a GPU only").run_status == "not_run"


def test_a_bug_in_one_entry_costs_only_its_own_cases(assignment, device):
    result = grade(assignment, device, SOURCE.replace("Y[threadIdx.x] = 2 *", "Y[threadIdx.x] = 3 *"))
    assert failing(result) == {("close", "the other entry")}
    assert result.score.earned == 1 + 2 + 4 + 32


def test_an_inout_array_keeps_what_the_caller_put_there(assignment, device):
    result = grade(assignment, device, SOURCE.replace("sums[i] += y", "sums[i] = y"))
    assert {case for _, case in failing(result)} == {"with a mask", "without a mask"}


def test_an_input_that_is_changed_is_named(assignment, device):
    result = grade(assignment, device, SOURCE.replace("Y[threadIdx.x] = 2", "X[0] = 0; Y[threadIdx.x] = 2"))
    assert ("inputs_untouched", "") in failing(result)


@pytest.mark.parametrize("code", [0, 3, 119])
def test_an_exit_inside_the_function_is_a_failed_run_whatever_its_code(assignment, device, code):
    source = "#include <cstdlib>\n" + SOURCE.replace(
        "twice_kernel<<<1, 32>>>", f"exit({code}); twice_kernel<<<1, 32>>>"
    )
    result = grade(assignment, device, source)
    assert ("runs", "the other entry") in failing(result)
    assert not result.needs_instructor
    (finding,) = [f for f in result.findings if (f.check, f.case) == ("runs", "the other entry")]
    assert f"exited with {code}" in finding.summary


def test_the_result_survives_a_round_trip_and_names_what_made_it(assignment, device):
    from grader import report

    result = grade(assignment, device, SOURCE)
    assert report.from_json(report.to_json(result)) == result
    assert result.versions["flashgrade"]
    assert result.assignment.version == assignment.version
    assert {"build", "run", "total"} <= set(result.timings)


def test_a_broken_reference_is_the_graders_fault_and_names_its_file(assignment, device, tmp_path):
    folder = tmp_path / "09_arguments"
    folder.mkdir()
    (folder / "reference.py").write_text("import nothing_of_that_name\n")
    broken = msgspec.structs.replace(assignment, folder=folder)
    with pytest.raises(GraderError, match=r"reference\.py"):
        grade(broken, device, SOURCE)


def test_a_reference_with_a_bug_is_the_graders_fault_and_names_its_case(assignment, device, tmp_path):
    folder = tmp_path / "09_arguments"
    folder.mkdir()
    (folder / "reference.py").write_text(REFERENCE.replace("2 * X", "2 * Z"))
    broken = msgspec.structs.replace(assignment, folder=folder)
    with pytest.raises(GraderError, match="the other entry"):
        grade(broken, device, SOURCE)


def test_nothing_is_left_behind(assignment, device, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    grade(assignment, device, SOURCE)
    assert list(tmp_path.iterdir()) == []
