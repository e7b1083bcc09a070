"""The command line as a user meets it: exit codes, one clear line for each mistake, nothing half-written."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOLUTION = ROOT / "solutions" / "03_flash_attention" / "flash_attention.cu"
SKELETON = ROOT / "assignments" / "03_flash_attention" / "flash_attention.cu"


def grader(*arguments, cwd=None, env=None, timeout=120):
    command = [sys.executable, "-m", "grader", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=timeout,
        check=False,
        env={**os.environ, **(env or {})},
    )


def assert_one_clear_line(answer, code, *parts):
    """Exit code, no traceback, and a first line that says what is wrong."""
    assert answer.returncode == code, answer.stderr
    assert "Traceback" not in answer.stderr + answer.stdout
    first = answer.stderr.splitlines()[0]
    assert first.startswith("Error: ")
    for part in parts:
        assert part in answer.stderr
    assert len(answer.stderr.splitlines()) <= 2


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The reference solution, graded once with every output."""
    folder = tmp_path_factory.mktemp("graded")
    answer = grader("grade", SOLUTION, "--out", folder / "out", "--json", folder / "copy.json")
    return answer, folder


def test_the_solution_earns_everything_and_exits_0(graded):
    answer, folder = graded
    assert answer.returncode == 0, answer.stdout + answer.stderr
    result = json.loads((folder / "out" / "result.json").read_text())
    assert result["schema"] == "flashgrade/result/v1"
    assert result["score"]["earned"] == result["score"]["assessed"] > 90
    assert not result["needs_instructor"]
    assert (folder / "copy.json").read_bytes() == (folder / "out" / "result.json").read_bytes()
    assert "<html" in (folder / "out" / "report.html").read_text()
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["report.html", "result.json"]


def test_piped_output_is_plain_text_without_escape_sequences(graded):
    answer, _ = graded
    assert "\x1b" not in answer.stdout
    assert answer.stderr == ""


def test_the_summary_names_the_reports(graded):
    answer, folder = graded
    assert str(folder / "out" / "report.html") in answer.stdout.replace("\n", "")


def test_the_skeleton_earns_nothing_and_exits_1(tmp_path):
    answer = grader("grade", SKELETON, "--json", "-")
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["score"]["earned"] == 0


def test_two_grades_of_one_file_agree_in_everything_but_time():
    volatile = ("timings", "graded_at", "device")
    first, second = (json.loads(grader("grade", SOLUTION, "--json", "-").stdout) for _ in range(2))
    for result in (first, second):
        for name in volatile:
            del result[name]
        result["build"]["duration"] = result["build"]["cached"] = None
        for case in result["cases"]:
            case["duration"] = None
            for launch in case["launches"]:
                launch["duration"] = None
    assert first == second


def test_start_copies_the_skeleton_and_grade_finds_the_assignment(tmp_path):
    answer = grader("start", "03", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    folder = tmp_path / "03_flash_attention"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "flash_attention.cu"]
    again = grader("start", "03", cwd=tmp_path)
    assert_one_clear_line(again, 2, "exists already")
    assert grader("grade", folder / "flash_attention.cu").returncode == 1


def test_list_shows_every_assignment():
    answer = grader("list")
    assert answer.returncode == 0
    assert "03_flash_attention" in answer.stdout
    assert re.search(r"\b100\b", answer.stdout)


def test_doctor_says_that_this_machine_can_grade():
    answer = grader("doctor")
    assert answer.returncode == 0
    assert "C++ compiler" in answer.stdout
    assert "This machine grades" in answer.stdout


def test_release_check_finds_the_skeletons_in_step():
    answer = grader("release", "--check")
    assert answer.returncode == 0, answer.stdout
    assert "up to date" in answer.stdout


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (None, ["there is no such file"]),
        (b"", ["is empty"]),
        (b"\x7fELF\0\0\0", ["binary file"]),
        (b"x" * (3 * 2**20), ["at most 2 MiB"]),
    ],
    ids=["missing", "empty", "binary", "too large"],
)
def test_a_file_that_cannot_be_graded_is_one_line_and_exit_2(tmp_path, data, parts):
    path = tmp_path / "flash_attention.cu"
    if data is not None:
        path.write_bytes(data)
    assert_one_clear_line(grader("grade", path, "-a", "03"), 2, str(path), *parts)


def test_a_folder_instead_of_a_file_is_explained(tmp_path):
    assert_one_clear_line(grader("grade", tmp_path, "-a", "03"), 2, "no .cu file")


def test_an_unknown_assignment_is_answered_with_those_that_exist():
    assert_one_clear_line(grader("grade", SKELETON, "-a", "99"), 2, "99", "03_flash_attention")


def test_an_unknown_device_is_answered_with_those_that_exist():
    assert_one_clear_line(grader("grade", SKELETON, "--on", "abacus"), 2, "abacus", "cpu")


@pytest.mark.parametrize("option", ["--out", "--json"])
def test_an_output_that_cannot_be_written_is_found_before_the_work(tmp_path, option):
    blocker = write(tmp_path / "file", b"")
    started = time.perf_counter()
    answer = grader("grade", SOLUTION, option, blocker / "inside" / "x")
    assert_one_clear_line(answer, 2, "cannot write")
    assert time.perf_counter() - started < 5


def test_no_compiler_is_one_line_exit_3_and_says_what_to_install(tmp_path):
    answer = grader("grade", SOLUTION, env={"PATH": str(tmp_path), "CXX": ""})
    assert_one_clear_line(answer, 3, "no C++ compiler", "install")


def test_a_file_without_the_entry_is_a_failed_check_not_a_grader_error(tmp_path):
    path = write(tmp_path / "flash_attention.cu", b"__global__ void k() {}\n")
    answer = grader("grade", path, "-a", "03")
    assert answer.returncode == 1
    assert "flash_attn_forward_cuda" in answer.stdout


def test_a_broken_manifest_is_one_line_with_file_and_key(tmp_path):
    folder = tmp_path / "assignments" / "03_flash_attention"
    shutil.copytree(SKELETON.parent, folder)
    manifest = folder / "assignment.toml"
    manifest.write_text(manifest.read_text().replace("points =", "pionts =", 1))
    answer = grader("grade", SKELETON, "-a", folder)
    assert_one_clear_line(answer, 3, "assignment.toml", "unknown key 'pionts'")


def test_a_wrong_option_is_wrong_usage():
    answer = grader("grade", SKELETON, "--nonsense")
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr


def test_ctrl_c_ends_with_one_line_and_leaves_nothing_behind(tmp_path):
    source = SOLUTION.read_text().replace("flash_attn_forward_cuda(", "flash_attn_forward_cuda(", 1)
    path = tmp_path / "flash_attention.cu"
    path.write_text(source + f"\n// {os.getpid()} {time.time()}\n")  # never in the build cache
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "grade", str(path), "-a", "03", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    deadline = time.monotonic() + 20
    while not list(temporary.glob("flashgrade-*/build/*.cu")) and time.monotonic() < deadline:
        time.sleep(0.01)  # until the compiler is at work
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Interrupted" in errors
    assert "Traceback" not in errors
    assert list(temporary.glob("flashgrade-*")) == []
    assert list((tmp_path / "out").iterdir()) == []


def test_watch_grades_again_when_the_file_is_saved(tmp_path):
    path = tmp_path / "flash_attention.cu"
    shutil.copy(SKELETON, path)
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "grader", "grade", str(path), "-a", "03", "--watch"],
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(log, "Watching", 1)
        shutil.copy(SOLUTION, path)
        wait_for(log, "Watching", 2)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
    assert process.returncode == 0  # the last grade's
    assert "Traceback" not in log.read_text()


def wait_for(log, word, count):
    deadline = time.monotonic() + 60
    while log.read_text().count(word) < count:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
