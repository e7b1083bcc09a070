"""Comparing an output with its reference, and saying where it is wrong."""

import numpy as np
import pytest

from grader import compare, numerics
from grader.errors import GraderError
from grader.records import Comparison, ToleranceSpec

FLOAT32 = ToleranceSpec()
ROWS, COLUMNS = 113, 64


def reference(rows: int = ROWS, columns: int = COLUMNS, *leading: int) -> numerics.Expected:
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal((*leading, rows, columns)).astype(np.float32) for _ in range(3))
    return numerics.attention(q, k, v)


def compared(got: np.ndarray, expected: numerics.Expected, tile: int = 32) -> Comparison:
    return compare.compare("O", got.astype(np.float32), expected, FLOAT32, tile=tile)


def with_errors(where: object, amount: float = 0.1) -> Comparison:
    """An otherwise right output whose elements at `where` are off by noise."""
    expected = reference()
    got = expected.value.copy()
    got[where] += amount * (1 + np.random.default_rng(5).random(got[where].shape))
    return compared(got, expected)


def test_a_right_output_is_inside_and_says_how_much_of_the_tolerance_it_used() -> None:
    expected = reference()
    comparison = compared(expected.value + 0.5 * expected.bound(FLOAT32), expected)
    assert (comparison.outside, comparison.nonfinite, comparison.unwritten) == (0, 0, 0)
    assert comparison.used == pytest.approx(0.5, abs=0.03)
    assert comparison.error_map is None
    assert comparison.pattern == ""
    assert compare.summarise(comparison) == "all 7232 elements of O are inside the bound"


def test_the_worst_element_leads_the_samples_and_the_summary() -> None:
    expected = reference()
    got = expected.value.copy()
    got[112, 7] += 91 * expected.bound(FLOAT32)[112, 7]
    got[100, 3] += 5 * expected.bound(FLOAT32)[100, 3]
    comparison = compared(got, expected)
    assert comparison.worst is not None
    assert [sample.index for sample in comparison.samples] == [(112, 7), (100, 3)]
    assert comparison.worst == comparison.samples[0]
    summary = compare.summarise(comparison)
    assert summary.startswith("2 of 7232 elements are outside the bound; worst O[112,7]: got ")
    assert summary.endswith("(91x the bound)")


def test_numbers_that_agree_in_four_digits_are_printed_with_more() -> None:
    summary = compare.summarise(
        compare.compare("O", np.array([[1.00001]]), numerics.exact(np.array([[1.0]])), FLOAT32, tile=32)
    )
    assert "got 1.00001, expected 1" in summary


def test_nan_is_outside_and_counted_as_not_finite() -> None:
    expected = reference()
    got = expected.value.copy()
    got[5, 6] = np.nan
    got[9] = np.inf
    comparison = compared(got, expected)
    assert (comparison.outside, comparison.nonfinite) == (65, 65)
    assert comparison.used is None
    assert comparison.worst is not None
    assert comparison.worst.index == (5, 6)
    assert comparison.worst.got is None
    assert "O[5,6]: got NaN" in compare.summarise(comparison)
    assert comparison.pattern.endswith("Among them: 1 NaN, 64 infinite.")


def test_an_element_whose_bits_are_all_ones_was_never_written() -> None:
    expected = reference()
    got = expected.value.astype(np.float32)
    got.view(np.uint32)[96:] = 0xFFFFFFFF
    comparison = compared(got, expected)
    assert comparison.unwritten == comparison.outside == 17 * 64
    assert comparison.pattern == "O was never written in rows 96..112, the last, partial tile of 32."
    assert comparison.error_map is not None
    assert set(comparison.error_map.cells[-1]) == {"u"}
    assert compare.summarise(comparison).endswith("are outside the bound, 1088 of them never written")


def test_an_ordinary_nan_counts_as_written() -> None:
    assert not compare.unwritten(np.full((2, 2), np.nan, np.float32)).any()
    assert compare.unwritten(np.full(3, 0xFFFF, np.uint16)).all()
    assert compare.unwritten(np.full(3, -1, np.int32)).all()


def test_an_output_that_was_never_written_says_so() -> None:
    got = np.full((ROWS, COLUMNS), 0xFFFFFFFF, np.uint32).view(np.float32)
    assert compared(got, reference()).pattern == "O was never written."


def test_minus_infinity_equals_minus_infinity() -> None:
    expected = numerics.exact(np.array([[0.0, -np.inf]]))
    assert compared(np.array([[0.0, -np.inf]]), expected).outside == 0
    assert compared(np.array([[0.0, 1.0]]), expected).outside == 1


def test_a_reference_of_another_shape_is_the_graders_fault_and_named() -> None:
    with pytest.raises(GraderError, match=r"reference of O has the shape \(113, 64\)"):
        compared(np.zeros((64, 113)), reference())


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (np.s_[96:], "All of them are in rows 96..112, the last, partial tile of 32."),
        (np.s_[32:64], "All of them are in rows 32..63, the 2nd tile of 32."),
        (np.s_[:32], "All of them are in rows 0..31, the first tile of 32."),
        (np.s_[32:], "All of them are in rows 32..112, everything after the first tile of 32."),
        (np.s_[64:], "All of them are in rows 64..112, the last, partial tile of 64."),
        (np.s_[112:], "All of them are in row 112, the last, partial tile of 16."),
        (np.s_[0], "All of them are in row 0."),
        (np.s_[31::32], "All of them are in every 32nd row."),
        (np.s_[::32], "All of them are in every 32nd row, from row 0 on."),
        (np.s_[:, 32:], "All of them are in columns 32..63, the last tile of 32."),
        (np.s_[:, 1::2], "All of them are in every 2nd column."),
        (np.s_[5:8, 3], "All of them are in rows 5..7, column 3."),
        (np.s_[[3, 4, 70]], "All of them are in rows 3..4 and 70."),
        (np.s_[:], "That is every element."),
    ],
)
def test_the_pattern_says_where_the_wrong_elements_are(where: object, sentence: str) -> None:
    assert with_errors(where).pattern.startswith(sentence)


def test_half_of_every_tile_is_recognised() -> None:
    rows = np.arange(ROWS) % 32 >= 16
    assert with_errors(rows).pattern.startswith("All of them are in rows 16..31 of every 32.")


def test_scattered_errors_have_no_pattern() -> None:
    mask = np.random.default_rng(11).random((ROWS, COLUMNS)) < 0.2
    assert with_errors(mask).pattern == ""


def test_one_wrong_element_has_no_pattern() -> None:
    assert with_errors(np.s_[4, 4]).pattern == ""


def test_the_diagonal_and_the_triangles_of_a_square_output_are_recognised() -> None:
    square = np.ones((40, 40), dtype=bool)
    assert compare.where(np.eye(40, dtype=bool), 32) == "All of them are in the diagonal."
    assert compare.where(np.triu(square, 1), 32) == "All of them are in the part above the diagonal."
    assert compare.where(np.tril(square, -1), 32) == "All of them are in the part below the diagonal."


def test_heads_are_named_for_outputs_with_leading_dims() -> None:
    bad = np.zeros((2, 4, 33, 8), dtype=bool)
    bad[:, 1:, 32] = True
    assert compare.where(bad, 32) == "All of them are in heads 1..3, row 32, the last, partial tile of 32."


def test_every_sentence_about_places_is_true_of_random_masks() -> None:
    """Rows that a sentence names with a range contain every wrong row."""
    random = np.random.default_rng(0)
    for _ in range(200):
        rows = random.integers(1, 100)
        bad = np.zeros((rows, 3), dtype=bool)
        first = random.integers(0, rows)
        bad[first : random.integers(first, rows) + 1] = True
        bad[random.random(bad.shape) < 0.3] = False
        sentence = compare.where(bad, 16)
        hit = np.flatnonzero(bad.any(axis=1))
        if ".." in sentence and "every" not in sentence and " and " not in sentence and "rows" in sentence:
            span = sentence.split("rows ")[1].split(",")[0].rstrip(".").split("..")
            assert int(span[0]) == hit[0]
            assert int(span[1]) == hit[-1]


def test_a_zero_output_is_called_zero() -> None:
    assert compared(np.zeros((ROWS, COLUMNS)), reference()).pattern.endswith("All of the output is zero.")


def test_a_constant_factor_is_recognised() -> None:
    expected = reference()
    assert "nearly constant factor, 0.88." in compared(0.88 * expected.value, expected).pattern


def test_a_factor_for_each_row_is_recognised() -> None:
    expected = reference()
    factors = np.linspace(0.25, 4, ROWS)[:, None]
    pattern = compared(factors * expected.value, expected).pattern
    assert pattern.endswith("is the expected one times a factor of its own, from 0.25 to 4.")


def test_equal_rows_are_recognised() -> None:
    expected = reference()
    got = np.broadcast_to(expected.value.mean(axis=0), (ROWS, COLUMNS))
    assert compared(got, expected).pattern.endswith("All rows of the output are the same, but should differ.")


def test_shifted_rows_are_recognised() -> None:
    expected = reference()
    got = expected.value.copy()
    got[:16] = expected.value[32:48]
    pattern = compared(got, expected).pattern
    assert pattern.endswith("Each of the wrong rows i holds what row i + 32 should hold.")


def test_permuted_rows_are_recognised() -> None:
    expected = reference()
    pattern = compared(expected.value[::-1].copy(), expected).pattern
    assert "row 0 holds what row 112 should hold" in pattern


def test_an_error_that_grows_with_the_row_is_recognised() -> None:
    expected = reference()
    noise = np.random.default_rng(2).standard_normal((ROWS, COLUMNS))
    growing = expected.value + noise * np.linspace(0.001, 0.1, ROWS)[:, None]
    assert compared(growing, expected).pattern.endswith("The error grows with the row.")
    even = expected.value + 0.1 * noise
    assert "grows" not in compared(even, expected).pattern


@pytest.mark.parametrize(
    ("rows", "columns", "tile"), [(1, 1, 32), (113, 64, 32), (1000, 128, 32), (4097, 80, 16), (100, 65, 24)]
)
def test_an_error_map_is_small_and_its_cells_do_not_cross_tiles(rows: int, columns: int, tile: int) -> None:
    expected = numerics.exact(np.zeros((rows, columns)))
    got = np.zeros((rows, columns))
    got[-1, -1] = 1.0
    error_map = compare.compare("O", got, expected, FLOAT32, tile=tile).error_map
    assert error_map is not None
    assert len(error_map.cells) == -(-rows // error_map.row_step) <= compare.MAP_CELLS
    assert {len(line) for line in error_map.cells} == {-(-columns // error_map.column_step)}
    assert tile % error_map.row_step == 0 or error_map.row_step % tile == 0
    assert error_map.cells[-1][-1] == "3"
    assert sum(cell != "." for line in error_map.cells for cell in line) == 1


def test_the_first_row_is_shown_beside_the_references() -> None:
    expected = reference()
    got = expected.value.copy()
    got[0, 2] = np.nan
    comparison = compared(got, expected)
    assert len(comparison.first_row) == len(comparison.first_row_expected) == 8
    assert comparison.first_row[2] is None
    assert comparison.first_row_expected[2] == expected.value[0, 2]


def test_an_output_without_elements_compares() -> None:
    comparison = compared(np.zeros((0, 64)), numerics.exact(np.zeros((0, 64))))
    assert (comparison.elements, comparison.outside, comparison.worst) == (0, 0, None)


def test_bfloat16_outputs_are_compared_by_value() -> None:
    bits = numerics.to_bfloat16(np.array([[1.0, -2.5]]))
    expected = numerics.exact(np.array([[1.0, -2.5]]))
    assert compare.compare("O", bits, expected, FLOAT32, tile=32).outside == 0
