"""Checks and points, on runs made by hand: each check fails for its own reason, and one cause costs once."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from grader import checks
from grader.numerics import attention
from grader.pipeline import judge
from grader.records import (
    Assignment,
    Build,
    Case,
    CheckSpec,
    CompilerMessage,
    Entry,
    Launch,
    Parameter,
    Run,
    ToleranceSpec,
)

N, D = 5, 3
ENTRY = Entry(
    "forward",
    "f",
    (
        Parameter("Q", "in", "float32", ("N", "d")),
        Parameter("O", "out", "float32", ("N", "d")),
        Parameter("N", "scalar", "int", value="N"),
    ),
    "forward",
)
CASE = Case("small", "forward", {"N": N, "d": D}, "normal", {}, 0, 6.0, "a hint", ())
LAUNCH = Launch("k", (1, 1, 1), (32, 1, 1), 0, 0.0)
RANDOM = np.random.default_rng(0)
Q, K, V = (RANDOM.normal(size=(N, D)).astype(np.float32).astype(np.float64) for _ in range(3))
EXPECTED = {"O": attention(Q, K, V)}
RIGHT = EXPECTED["O"].value.astype(np.float32)


def assignment(*extra):
    names = ["compiles", "runs", "written", "finite", "close", *extra]
    points = {"inputs_untouched": 1.0, "memory": 2.0, "deterministic": 3.0, "workspace": 4.0}
    return Assignment(
        slug="t",
        folder=Path(),
        title="T",
        summary="",
        file="f.cu",
        tile=2,
        tolerance=ToleranceSpec(),
        entries=(ENTRY,),
        cases=(CASE,),
        checks=tuple(CheckSpec(name, points.get(name, 0.0)) for name in names),
        version="0",
    )


def findings(output=RIGHT, *extra, build=None, **changes):
    made = assignment(*extra)
    run = Run("small", "ok", outputs={"O": output}, launches=(LAUNCH,))
    run = msgspec.structs.replace(run, **changes)
    subject = checks.CaseSubject(made, ENTRY, CASE, run, EXPECTED)
    return {finding.check: finding for finding in judge(made, build or Build("ok"), [subject], "cpu")}


def earned(found):
    return sum(finding.points for finding in found.values())


def failing(found):
    return {name for name, finding in found.items() if finding.status == "fail"}


def altered(index, value):
    output = RIGHT.copy()
    output[index] = value
    return output


def test_a_right_output_passes_and_earns_its_points_at_the_last_gate():
    found = findings()
    assert {finding.status for finding in found.values()} == {"pass"}
    assert (found["close"].points, found["close"].max_points, found["finite"].max_points) == (6, 6, 0)
    assert "of the tolerance used" in found["close"].summary


UNWRITTEN = np.full_like(RIGHT, 0)
UNWRITTEN.view(np.uint32)[:] = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("output", "check"),
    [
        (UNWRITTEN, "written"),
        (altered((4, 1), np.nan), "finite"),
        (altered((4, 1), np.inf), "finite"),
        (altered((4, 1), RIGHT[4, 1] + 1e-3), "close"),
    ],
)
def test_one_wrong_element_fails_one_check_and_the_later_ones_are_skipped(output, check):
    found = findings(output)
    assert failing(found) == {check}
    assert (found[check].points, found[check].max_points) == (0, 6)
    later = [f for f in found.values() if f.because]
    assert all(f.because == check and f.status == "skip" and f.max_points == 0 for f in later)
    assert sum(f.max_points for f in found.values()) == 6


def test_a_partly_written_output_says_which_elements():
    output = RIGHT.copy()
    output.view(np.uint32)[4] = 0xFFFFFFFF
    found = findings(output)
    assert failing(found) == {"written"}
    assert "3 of 15 elements of O were never written" in found["written"].summary


def test_a_right_output_without_a_kernel_launch_earns_nothing():
    found = findings(RIGHT, launches=())
    assert failing(found) == {"runs"}
    assert "without launching a kernel" in found["runs"].summary
    assert earned(found) == 0


def test_a_check_that_had_nothing_to_look_at_is_lost_with_the_cases_that_crashed():
    found = findings(RIGHT, "deterministic", status="crash")
    assert (found["deterministic"].because, found["deterministic"].assessed) == ("runs", True)


@pytest.mark.parametrize(
    ("status", "outcome", "assessed"),
    [
        ("crash", "fail", True),
        ("hang", "fail", True),
        ("launch_failed", "fail", True),
        ("unsupported", "skip", False),
        ("lost", "error", False),
    ],
)
def test_how_a_run_ended_decides_before_its_output_is_looked_at(status, outcome, assessed):
    found = findings(status=status, message="what happened")
    assert (found["runs"].status, found["runs"].assessed) == (outcome, assessed)
    assert found["runs"].summary == "what happened"
    assert found["close"].because == "runs"
    assert earned(found) == 0


def test_changed_inputs_fail_and_name_the_array_and_the_case():
    found = findings(RIGHT, "inputs_untouched", modified_inputs=("Q",))
    assert failing(found) == {"inputs_untouched"}
    assert 'Q was changed in case "small"' in found["inputs_untouched"].summary


def test_a_write_beyond_a_buffer_fails_memory():
    assert failing(findings(RIGHT, "memory", overrun_buffers=("O",))) == {"memory"}


def test_a_repeat_that_differs_by_more_than_rounding_fails_deterministic():
    nearly = {"O": np.nextafter(RIGHT, np.float32(10))}
    assert failing(findings(RIGHT, "deterministic", repeats=(nearly,))) == set()
    wrong = {"O": altered((0, 0), 7.0)}
    assert failing(findings(RIGHT, "deterministic", repeats=(nearly, wrong))) == {"deterministic"}
    gone = {"O": altered((0, 0), np.nan)}
    assert failing(findings(RIGHT, "deterministic", repeats=(gone,))) == {"deterministic"}


def test_workspace_beyond_the_limit_and_leaks_fail_workspace():
    assert failing(findings(RIGHT, "workspace", peak_bytes=60_000)) == set()
    assert failing(findings(RIGHT, "workspace", peak_bytes=70_000)) == {"workspace"}
    assert failing(findings(RIGHT, "workspace", peak_bytes=4, leaked_bytes=4)) == {"workspace"}


def test_a_run_that_crashed_is_not_accused_of_a_leak():
    found = findings(RIGHT, "workspace", status="crash", peak_bytes=10**9, leaked_bytes=10**9)
    assert found["workspace"].status == "skip"


SIDE_CHECKS = ("inputs_untouched", "memory", "deterministic", "workspace")


def test_a_kernel_that_writes_zeros_earns_nothing_from_the_side_checks():
    found = findings(np.zeros_like(RIGHT), *SIDE_CHECKS, repeats=({"O": np.zeros_like(RIGHT)},))
    assert earned(found) == 0
    for name in SIDE_CHECKS:
        assert (found[name].status, found[name].because, found[name].assessed) == ("skip", "close", True)


def test_a_file_that_does_not_compile_loses_every_point_once():
    message = CompilerMessage("error", 7, 1, "expected ';'")
    found = findings(RIGHT, *SIDE_CHECKS, build=Build("compile_error", "line 7: ...", messages=(message,)))
    assert failing(found) == {"compiles"}
    assert found["compiles"].line == 7
    assert earned(found) == 0
    assert sum(finding.max_points for finding in found.values() if finding.assessed) == 16


@pytest.mark.parametrize(("status", "outcome"), [("needs_gpu", "skip"), ("grader_fault", "error")])
def test_what_is_not_the_students_fault_costs_no_point(status, outcome):
    found = findings(RIGHT, *SIDE_CHECKS, build=Build(status, "..."))
    assert found["compiles"].status == outcome
    assert not any(finding.assessed for finding in found.values())


def test_every_check_has_a_sentence_for_the_report():
    for check in checks.discover().values():
        assert check.title[0].isupper()
        assert not check.title.endswith(".")
        assert "\n" not in check.title
