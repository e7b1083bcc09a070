"""Skeletons come from annotated solutions, and what is badly annotated is refused."""

import pytest

from grader import authoring
from grader.errors import GraderError

SOLUTION = """\
int before;
    // TODO(1): say the answer (about 1 line)
    // BEGIN SOLUTION
    int answer = 42;
    // SKELETON: int answer = 0;
    // END SOLUTION
int after;
"""


def test_the_solution_is_removed_and_the_rest_is_kept():
    assert authoring.skeleton(SOLUTION) == (
        "int before;\n    // TODO(1): say the answer (about 1 line)\n    int answer = 0;\nint after;\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SOLUTION.replace("    // END SOLUTION\n", ""), "without END"),
        (SOLUTION.replace("    // BEGIN SOLUTION\n", ""), "without BEGIN"),
        (SOLUTION.replace("    int answer", "    // BEGIN SOLUTION\n    int answer"), "inside the one"),
        (SOLUTION.replace(" (about 1 line)", ""), "no '// TODO"),
        (SOLUTION.replace("// TODO(1)", "// Do"), "no '// TODO"),
    ],
)
def test_a_badly_annotated_solution_is_refused_with_its_line(text, problem):
    with pytest.raises(GraderError, match=problem) as caught:
        authoring.skeleton(text, "solution.cu")
    assert caught.value.message.startswith("solution.cu:")


def test_todos_are_numbered_from_one_without_gaps():
    with pytest.raises(GraderError, match="numbered"):
        authoring.todos("// TODO(1): a (about 1 line)\n// TODO(3): b (about 2 lines)\n")
    assert authoring.todos("// TODO(1): a (about 1 line)\n// TODO(2): b (about 20 lines)\n") == {1: 1, 2: 20}


def test_release_writes_only_what_changed(tmp_path):
    assignment, solution = tmp_path / "assignments" / "09_x", tmp_path / "solutions" / "09_x"
    assignment.mkdir(parents=True)
    solution.mkdir(parents=True)
    (solution / "x.cu").write_text(SOLUTION)
    target, changed = authoring.release(assignment, tmp_path / "solutions", check_only=True)
    assert changed
    assert not target.exists()
    assert authoring.release(assignment, tmp_path / "solutions") == (target, True)
    assert authoring.release(assignment, tmp_path / "solutions") == (target, False)
    target.write_text("edited by hand\n")
    assert authoring.release(assignment, tmp_path / "solutions", check_only=True) == (target, True)
