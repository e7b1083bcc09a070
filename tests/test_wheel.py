"""The wheel: carries templates and assignments, never a solution, and grades from an empty folder."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOLUTION = ROOT / "solutions" / "03_flash_attention" / "flash_attention.cu"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_it_carries_what_grading_needs_and_no_solution(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "grader/_data/assignments/03_flash_attention/flash_attention.cu" in names
    assert "grader/_data/assignments/03_flash_attention/assignment.toml" in names
    assert any(name.startswith("grader/_data/templates/") for name in names)
    assert any(name.startswith("grader/emulator/include/") for name in names)
    assert not [name for name in names if "solution" in name or "hidden" in name or "tests/" in name]
    skeletons = [zipfile.ZipFile(wheel).read(name) for name in names if name.endswith(".cu")]
    assert skeletons
    assert not [text for text in skeletons if b"BEGIN SOLUTION" in text]


def test_it_grades_from_an_empty_folder(wheel, tmp_path):
    """A fresh environment that sees our dependencies (nothing is downloaded) but only the wheel's grader."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(dependencies))
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "mine.cu").write_bytes(SOLUTION.read_bytes())
    command = [str(tmp_path / "env" / "bin" / "python"), "-m", "grader", "grade", "mine.cu", "--out", "out"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run(
        command, cwd=empty, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert (empty / "out" / "report.html").is_file()
    where = [command[0], "-c", "import grader; print(grader.__file__)"]
    location = subprocess.run(where, cwd=empty, env=environment, capture_output=True, text=True, check=True)
    assert str(packages) in location.stdout
