"""Where the wrong elements of an output are, and what they look like, in words.

Only what is exactly true is said, and nothing when there is no pattern: a student will believe it. Patterns
describe; causes are the business of `grader.diagnosis`. Masks and arrays are [..., rows, columns]; the
leading dims are heads, or batch elements and heads. A one-dimensional output counts as one column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Float64 = NDArray[np.float64]

_OTHER_TILES = (64, 128, 16, 8)  # what students choose beside the assignment's own
_MOST_RANGES = 3  # more than these are not a pattern that anybody can read
_MOST_ROWS_SEARCHED = 32
_NAMES_OF_LEADING = {1: ("head",), 2: ("batch element", "head")}


def where(bad: Bools, tile: int) -> str:
    """Say in a sentence where the true elements of `bad` are; "" when there is nothing to say."""
    count = int(np.count_nonzero(bad))
    if count <= 1:
        return ""
    if count == bad.size:
        return "That is every element."
    place = _place(bad, tile)
    return f"All of them are in {place}." if place else ""


def unwritten_pattern(missing: Bools, tile: int) -> str:
    """Say where the elements are that were never written, as the end of a sentence; never empty."""
    if missing.all():
        return "all of it"
    return _place(missing, tile) or "here and there"


def values(got: Float64, want: Float64, bound: Float64, outside: Bools) -> str:
    """Say in a sentence what the wrong values look like; "" when they look like nothing.

    All arrays have the shape of the output; `outside` says which elements are wrong.
    """
    if not np.isfinite(got[outside]).all():
        return _nonfinite(got, outside)
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        return ""  # masked scores are -inf, and nothing below can do arithmetic with those
    if not got.any():
        return "All of the output is zero."
    got, want, bound, outside = (_as_matrix(array) for array in (got, want, bound, outside))
    return (
        _factor(got, want, bound, outside)
        or _same_rows(got, want, bound)
        or _moved_rows(got, want, bound, outside)
        or _growing(got, want, bound, outside)
    )


# --- where -------------------------------------------------------------------------------------------


def _place(bad: Bools, tile: int) -> str:
    grid = bad.reshape(-1, 1) if bad.ndim < 2 else bad
    leading = tuple(range(grid.ndim - 2))
    parts = [_leading(grid, axis) for axis in leading]
    matrix = _any(grid, leading)
    diagonal = _diagonal(matrix)
    if diagonal:
        parts.append(diagonal)
    else:
        parts += [_line(_any(matrix, (1,)), "row", tile), _line(_any(matrix, (0,)), "column", tile)]
    return ", ".join(part for part in parts if part)


def _leading(grid: Bools, axis: int) -> str:
    names = _NAMES_OF_LEADING.get(grid.ndim - 2)
    noun = names[axis] if names else f"index (dim {axis})"
    others = tuple(other for other in range(grid.ndim) if other != axis)
    hit = _any(grid, others)
    return "" if hit.all() else _ranges(hit, noun)


def _any(grid: Bools, axes: tuple[int, ...]) -> Bools:
    return np.asarray(grid.any(axis=axes), dtype=np.bool_)


def _diagonal(matrix: Bools) -> str:
    rows, columns = matrix.shape
    if rows != columns or rows < 4:
        return ""
    row, column = np.nonzero(matrix)
    if (row == column).all():
        return "the diagonal"
    # Most of a triangle is needed: a few elements of one corner are not "above the diagonal" to a reader.
    if len(row) * 4 < rows * rows:
        return ""
    if (column > row).all():
        return "the part above the diagonal"
    return "the part below the diagonal" if (column < row).all() else ""


def _line(hit: Bools, noun: str, tile: int) -> str:
    """Describe which rows (or columns) are hit; "" when all are, or when there is no pattern."""
    if hit.all():
        return ""
    return _periodic(hit, noun, tile) or _ranges(hit, noun, tile)


def _periodic(hit: Bools, noun: str, tile: int) -> str:
    indices = np.flatnonzero(hit)
    steps = np.diff(indices)
    if len(indices) >= 3 and steps[0] > 1 and (steps == steps[0]).all():
        step = int(steps[0])
        if indices[0] < step and indices[-1] + step >= len(hit):
            start = "" if indices[0] == step - 1 else f", from {noun} {indices[0]} on"
            return f"every {_ordinal(step)} {noun}{start}"
    for period in (tile, *_OTHER_TILES):
        first = hit[:period]
        whole = np.resize(first, len(hit))
        if len(hit) >= 2 * period and (whole == hit).all():
            inside = _ranges(first, noun)
            return f"{inside} of every {period}" if inside else ""
    return ""


def _ranges(hit: Bools, noun: str, tile: int = 0) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], hit, [False]]).astype(np.int8)))
    spans = [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    if len(spans) > _MOST_RANGES:
        first, last = spans[0][0], spans[-1][1]
        if 4 * (last - first + 1) > 3 * len(hit):
            return ""
        return f"{_plural(noun)} {first}..{last}"
    texts = [str(first) if first == last else f"{first}..{last}" for first, last in spans]
    single = len(spans) == 1 and spans[0][0] == spans[0][1]
    text = f"{noun if single else _plural(noun)} {_listed(texts)}"
    note = _tile_note(spans[0], len(hit), tile) if tile and len(spans) == 1 else ""
    return f"{text}, {note}" if note else text


def _tile_note(span: tuple[int, int], length: int, tile: int) -> str:
    """Say which tile a range of rows is, if it is one; the assignment's own tile size comes first."""
    first, last = span
    for size in (tile, *_OTHER_TILES):
        if first % size or length <= size:
            continue
        if last == length - 1 and last - first + 1 < size:
            return f"the last, partial tile of {size}"
        if last - first + 1 == size:
            kind = (
                "first" if first == 0 else "last" if last == length - 1 else f"{_ordinal(first // size + 1)}"
            )
            return f"the {kind} tile of {size}"
        if last == length - 1 and first == size:
            return f"everything after the first tile of {size}"
    return ""


# --- what ----------------------------------------------------------------------------------------------


def _nonfinite(got: Float64, outside: Bools) -> str:
    wrong = got[outside]
    nan, infinite = np.isnan(wrong), np.isinf(wrong)
    if nan.all():
        return "All of them are NaN." if len(wrong) > 1 else ""
    if infinite.all():
        return "All of them are infinite." if len(wrong) > 1 else ""
    counts = [f"{n} NaN" for n in [np.count_nonzero(nan)] if n]
    counts += [f"{n} infinite" for n in [np.count_nonzero(infinite)] if n]
    return f"Among them: {', '.join(counts)}."


def _factor(got: Float64, want: Float64, bound: Float64, outside: Bools) -> str:
    """Rows that are multiples of what they should be: one factor for all, or one for each."""
    wrong = outside.any(axis=1)
    if got.shape[1] < 4:
        return ""  # any row of a few elements is nearly a multiple of any other
    norm = (want * want).sum(axis=1)
    factors = (got * want).sum(axis=1) / np.where(norm > 0, norm, 1.0)
    fits = np.abs(got - factors[:, None] * want) <= (1 + np.abs(factors[:, None])) * bound
    if not fits[wrong].all() or not (np.abs(factors[wrong]) > 1e-3).all():
        return ""
    low, high = factors[wrong].min(), factors[wrong].max()
    which = "Every row" if wrong.all() else "Every wrong row"
    if high - low <= 0.02 * abs(high):
        return f"{which} is the expected one times a nearly constant factor, {np.median(factors[wrong]):.3g}."
    return f"{which} is the expected one times a factor of its own, from {low:.3g} to {high:.3g}."


def _same_rows(got: Float64, want: Float64, bound: Float64) -> str:
    alike = (np.abs(got - got[0]) <= bound).all()
    differ = (np.abs(want - want[0]) > 2 * bound).any()
    return "All rows of the output are the same, but should differ." if alike and differ else ""


def _moved_rows(got: Float64, want: Float64, bound: Float64, outside: Bools) -> str:
    """Wrong rows that hold what belongs in other rows."""
    wrong = np.flatnonzero(outside.any(axis=1))
    if len(wrong) < 2 or got.shape[1] < 4:
        return ""
    searched = wrong[np.linspace(0, len(wrong) - 1, min(len(wrong), _MOST_ROWS_SEARCHED)).astype(int)]
    distances = (want * want).sum(axis=1) - 2 * got[searched] @ want.T
    sources = distances.argmin(axis=1)
    if not (np.abs(got[searched] - want[sources]) <= 2 * bound[sources]).all():
        return ""
    shifts = sources - searched
    if (shifts == shifts[0]).all() and len(searched) == len(wrong):
        sign = "+" if shifts[0] > 0 else "-"
        return f"Each of the wrong rows i holds what row i {sign} {abs(int(shifts[0]))} should hold."
    some = f"row {searched[0]} holds what row {sources[0]} should hold"
    return f"The wrong rows hold what other rows should hold: {some}."


def _growing(got: Float64, want: Float64, bound: Float64, outside: Bools) -> str:
    """Errors that grow, or shrink, with the row: medians of quarters that rise at least fourfold in all."""
    rows = len(got)
    if rows < 16 or not outside.any(axis=1).mean() > 0.5:
        return ""
    errors = (np.abs(got - want) / bound).max(axis=1)
    quarters = [float(np.median(part)) for part in np.array_split(errors, 4)]
    for direction, steps in (("grows", quarters), ("shrinks", quarters[::-1])):
        if steps[0] < steps[1] < steps[2] < steps[3] and steps[3] >= 4 * steps[0]:
            return f"The error {direction} with the row."
    return ""


def _as_matrix(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(-1, array.shape[-1] if array.ndim >= 2 else 1)


# --- words -----------------------------------------------------------------------------------------------


def _plural(noun: str) -> str:
    return f"{noun}s" if not noun.endswith(")") else noun


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
