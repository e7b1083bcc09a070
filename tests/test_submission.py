"""What is handed in is read leniently, and what cannot be graded is refused in one line."""

import os

import pytest

from grader import submission
from grader.errors import UsageError


def test_text_is_normalised_and_the_bytes_are_kept(tmp_path):
    path = tmp_path / "a.cu"
    data = b"\xef\xbb\xbfint a;\r\n// caf\xe9\rint b;\n"
    path.write_bytes(data)
    read = submission.read(path)
    assert read.text == "int a;\n// caf�\nint b;\n"
    assert read.data == data


def test_a_folder_stands_for_the_file_in_it(tmp_path):
    (tmp_path / "flash_attention.cu").write_text("x")
    (tmp_path / "other.cu").write_text("y")
    assert submission.read(tmp_path).text == "x"


def test_a_folder_with_one_cu_file_of_another_name_stands_for_that_file(tmp_path):
    (tmp_path / "Mine.CU").write_text("x")
    assert submission.read(tmp_path).name == "Mine.CU"


def make_sparse(path):
    with path.open("wb") as file:
        os.truncate(file.fileno(), 100 * 2**20)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b" \n"), "is empty"),
        (lambda path: path.write_bytes(b"\x7fELF\0\0"), "binary"),
        (make_sparse, "100 MiB"),
        (lambda path: path.mkdir(), "no .cu file"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
    ids=["missing", "empty", "binary", "100 MB", "folder", "pipe", "endless link"],
)
def test_what_cannot_be_graded_is_refused_in_one_line(tmp_path, make, problem):
    path = tmp_path / "a.cu"
    make(path)
    with pytest.raises(UsageError) as caught:
        submission.read(path)
    assert problem in caught.value.message
    assert "\n" not in caught.value.message


def test_a_misspelt_name_is_answered_with_the_files_that_are_there(tmp_path):
    (tmp_path / "flash_attention.cu").write_text("x")
    with pytest.raises(UsageError) as caught:
        submission.read(tmp_path / "flash_atention.cu")
    assert "flash_attention.cu" in caught.value.hint
