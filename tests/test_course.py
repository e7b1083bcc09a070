"""A manifest is understood whole, or refused with the file, the key, and what was expected."""

import pytest

from grader import course
from grader.errors import GraderError, UsageError

MANIFEST = """\
title = "A title"
summary = "A summary."

[[entries]]
name = "forward"
function = "attention"
args = ["Q: in float32[N, d]", "bias: in float16[H*N, N]?", "O: out float32[N, d]", "N: int",
        "scale: float = 1/sqrt(d)", "causal: bool", "stream: stream"]

[[cases]]
name = "small"
dims = {N = 4, d = 16, H = 2}
scalars = {causal = true}
inputs = {Q = "normal", bias = "null"}
points = 6

[[checks]]
check = "close"
"""


def load(tmp_path, text, reference="def forward(**arguments): return {}\n"):
    folder = tmp_path / "assignments" / "09_test"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "assignment.toml").write_text(text)
    (folder / "reference.py").write_text(reference)
    return course.load(folder)


def test_a_manifest_is_understood_whole(tmp_path):
    assignment = load(tmp_path, MANIFEST)
    entry, case = assignment.entries[0], assignment.cases[0]
    assert [parameter.role for parameter in entry.parameters] == [
        "in",
        "in",
        "out",
        "scalar",
        "scalar",
        "scalar",
        "stream",
    ]
    bias = entry.parameters[1]
    assert (bias.dtype, bias.dims, bias.nullable) == ("float16", ("H*N", "N"), True)
    assert course.scalars_of(entry, case) == {"N": 4, "scale": 0.25, "causal": True}
    assert (entry.reference, case.entry, assignment.slug) == ("forward", "forward", "09_test")


def test_the_version_changes_with_the_manifest_and_with_the_reference(tmp_path):
    versions = {
        load(tmp_path, MANIFEST).version,
        load(tmp_path, MANIFEST.replace("points = 6", "points = 7")).version,
        load(tmp_path, MANIFEST, "def forward(**arguments): return 1\n").version,
    }
    assert len(versions) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "titel =", "unknown key 'titel'; expected one of: title, summary"),
        ('title = "A title"', "title = 3", "title: expected `str`, got `int`"),
        ('summary = "A summary."', "", "the key 'summary' is missing"),
        ("points = 6", "point = 6", "cases[0] ('small'): unknown key 'point'; expected one of: name, dims"),
        ("points = 6", 'points = "6"', "cases[0] ('small').points: expected `float`, got `str`"),
        ("points = 6", "points = -1", "cases[0] ('small').points: expected zero or more"),
        ("N = 4", 'N = "4"', "cases[0] ('small').dims[...]: expected `int`, got `str`"),
        ("N = 4", "N = -4", "is not a shape"),
        (", H = 2", "", "'bias' of entry 'forward' does not resolve"),
        ("{causal = true}", "{}", "'causal' of entry 'forward' does not resolve"),
        ('Q = "normal"', 'Q = "nromal"', "inputs.Q: unknown distribution 'nromal'; expected one of:"),
        ('Q = "normal"', 'X = "normal"', "inputs.X: no such argument; expected one of: Q, bias, O"),
        ('check = "close"', 'check = "closed"', "unknown check 'closed'; expected one of: close, compiles"),
        ('check = "close"', 'check = "close"\ncases = ["big"]', "there is no case named 'big'"),
        (
            "out float32[N, d]",
            "out float33[N, d]",
            "args[2]: unknown dtype 'float33'; expected one of: float32",
        ),
        ("out float32[N, d]", "float32 out", "args[2]: cannot read 'float32 out'; expected"),
        ("out float32[N, d]", "in float32[N, d]", "expected at least one 'out' or 'inout' argument"),
        ("N: int", "Q: int", "the name 'Q' is used twice"),
        ("1/sqrt(d)", "1/sqrt(D)", "'scale' of entry 'forward' does not resolve"),
        ('"attention"', '"my attention"', "expected the name of a C++ function"),
        (
            'name = "small"',
            'name = "small"\nentry = "back"',
            "unknown entry 'back'; expected one of: forward",
        ),
        (
            'name = "small"',
            'name = "small"\non = ["tpu"]',
            "cases[0] ('small').on[0]: invalid enum value 'tpu'",
        ),
        ("[[checks]]", "[[checks]", "not valid TOML"),
        ("[[checks]]\n", '[[checks]]\ncheck = "close"\n[[checks]]\n', "the name 'close' is used twice"),
    ],
)
def test_what_is_wrong_is_named_with_file_key_and_expectation(tmp_path, old, new, message):
    assert old in MANIFEST
    with pytest.raises(GraderError) as caught:
        load(tmp_path, MANIFEST.replace(old, new, 1))
    assert "assignment.toml" in caught.value.message
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_reference_that_lacks_the_entry_is_named(tmp_path):
    assignment = load(tmp_path, MANIFEST, "")
    with pytest.raises(GraderError, match="no function 'forward'"):
        course.reference_of(assignment, assignment.entries[0])


def test_an_assignment_is_found_by_slug_by_its_start_and_by_path():
    slug = course.slugs()[0]
    folder = course.find(slug)
    assert course.find(slug[:4]) == folder
    assert course.find(str(folder)) == folder
    with pytest.raises(UsageError, match="not in the course"):
        course.find("99_nothing")


def test_every_assignment_of_the_course_loads_and_adds_up_to_100_points():
    for slug in course.slugs():
        assignment = course.load(course.find(slug))
        total = sum(case.points for case in assignment.cases) + sum(
            check.points for check in assignment.checks
        )
        assert total == 100, slug


def test_hidden_cases_come_only_when_asked_for():
    folder = course.find("03")
    visible, whole = course.load(folder), course.load(folder, hidden=True)
    assert not any(case.hidden for case in visible.cases)
    assert any(case.hidden for case in whole.cases)
    assert visible.version != whole.version
