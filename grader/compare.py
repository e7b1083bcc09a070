"""One output against its reference: which elements are outside the bound, how far, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grader import patterns
from grader.errors import GraderError
from grader.numerics import Expected, as_float64
from grader.patterns import unwritten_pattern, where
from grader.records import Assignment, Comparison, Element, ErrorMap, Run, ToleranceSpec

__all__ = [
    "all_outputs",
    "as_float",
    "compare",
    "summarise",
    "unwritten",
    "unwritten_pattern",
    "where",
]

Bools = NDArray[np.bool_]
Float64 = NDArray[np.float64]

SAMPLES = 6  # of the worst elements, for a table
FIRST_ROW = 8  # values of the first row shown
MAP_CELLS = 64  # at most, in each direction of an error map
_MARKS = ".123nu"  # of an error map, from the least to the most serious


class Subject(Protocol):
    """What `all_outputs` needs to know of a case that was run."""

    @property
    def assignment(self) -> Assignment: ...
    @property
    def run(self) -> Run: ...
    @property
    def expected(self) -> Mapping[str, Expected]: ...


def all_outputs(subject: Subject) -> tuple[Comparison, ...]:
    """Compare every output of a run with its reference, in the order of the run's outputs."""
    assignment = subject.assignment
    return tuple(
        compare(name, got, subject.expected[name], assignment.tolerance, tile=assignment.tile)
        for name, got in subject.run.outputs.items()
    )


def compare(
    output: str,
    got: NDArray[Any],
    expected: Expected,
    tolerance: ToleranceSpec,
    *,
    tile: int,
    written: Bools | None = None,
) -> Comparison:
    """Compare an output with its reference and say everything that a report shows about it.

    `written` says which elements the call wrote; None: those whose bits are not all ones, with which the
    runner fills outputs. Raises `GraderError` when the reference has another shape than the output.
    """
    if got.shape != expected.value.shape:
        raise GraderError(
            f"the reference of {output} has the shape {expected.value.shape}, the output {got.shape}",
            "the manifest's dims and reference.py do not agree",
        )
    value, want, bound = as_float(got), expected.value, expected.bound(tolerance)
    missing = unwritten(got) if written is None else ~written
    with np.errstate(invalid="ignore"):
        error = np.where(value == want, 0.0, np.abs(value - want))  # -inf equals -inf
        inside = (error <= bound) & ~missing  # since NaN is not <=, it fails
    ratio = _ratio(error, bound)
    outside = ~inside
    count = int(np.count_nonzero(outside))
    samples = tuple(_element(i, value, want, bound, ratio) for i in _worst(ratio, outside, missing))
    return Comparison(
        output=output,
        shape=got.shape,
        elements=got.size,
        outside=count,
        nonfinite=int(np.count_nonzero(~np.isfinite(value) & (value != want))),
        unwritten=int(np.count_nonzero(missing)),
        used=None if not samples else samples[0].ratio,
        worst=samples[0] if samples else None,
        samples=samples if count else (),
        first_row=tuple(None if np.isnan(x) else float(x) for x in _first_row(value)),
        first_row_expected=tuple(float(x) for x in _first_row(want)),
        pattern=_pattern(output, value, want, bound, outside, missing, tile) if count else "",
        bound=expected.describe(tolerance),
        error_map=_error_map(ratio, value, outside, missing, tile) if count else None,
    )


def summarise(comparison: Comparison) -> str:
    """Say in one line how many elements are outside the bound, and which is the worst."""
    c = comparison
    if not c.outside:
        return f"all {c.elements} elements of {c.output} are inside the bound"
    verb = "is" if c.outside == 1 else "are"
    text = f"{c.outside} of {c.elements} elements {verb} outside the bound"
    if c.unwritten:
        text += f", {c.unwritten} of them never written"
    if c.worst is None or c.unwritten == c.outside:
        return text
    return f"{text}; worst {_named(c.output, c.worst)}"


def as_float(array: NDArray[Any]) -> Float64:
    """Return the values of an array of any dtype of a manifest in float64 (bfloat16 comes as uint16)."""
    return as_float64(array)


def unwritten(got: NDArray[Any]) -> Bools:
    """Return which elements still hold the poison that outputs are filled with: all bits ones."""
    bits = np.ascontiguousarray(got).view(f"u{got.dtype.itemsize}")
    return np.asarray(bits == np.iinfo(bits.dtype).max)


def _ratio(error: Float64, bound: Float64) -> Float64:
    """Error over bound; 0 where there is no error, infinity where none is allowed, NaN for NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error == 0, 0.0, error / bound)


def _worst(ratio: Float64, outside: Bools, missing: Bools) -> list[int]:
    """Return the flat indices of the worst elements outside, or of the worst of all when none is."""
    rank = np.where(missing | ~np.isfinite(ratio), np.inf, ratio).ravel()
    candidates = np.flatnonzero(outside)
    if not candidates.size:
        return [int(rank.argmax())] if rank.size else []
    order = np.argsort(-rank[candidates], kind="stable")[:SAMPLES]
    return [int(i) for i in candidates[order]]


def _element(flat: int, value: Float64, want: Float64, bound: Float64, ratio: Float64) -> Element:
    index = tuple(int(i) for i in np.unravel_index(flat, value.shape))
    got, share = float(value[index]), float(ratio[index])
    return Element(
        index=index,
        got=None if np.isnan(got) else got,
        expected=float(want[index]),
        bound=float(bound[index]),
        ratio=share if np.isfinite(share) else None,
    )


def _first_row(array: Float64) -> Float64:
    return array.reshape(-1, array.shape[-1])[0, :FIRST_ROW] if array.size else array.ravel()


def _pattern(
    output: str,
    value: Float64,
    want: Float64,
    bound: Float64,
    outside: Bools,
    missing: Bools,
    tile: int,
) -> str:
    if missing.all():
        return f"{output} was never written."
    sentences = []
    if missing.any():
        sentences.append(f"{output} was never written in {unwritten_pattern(missing, tile)}.")
    else:
        sentences += [where(outside, tile), patterns.values(value, want, bound, outside)]
    return " ".join(sentence for sentence in sentences if sentence)


def _error_map(ratio: Float64, value: Float64, outside: Bools, missing: Bools, tile: int) -> ErrorMap | None:
    with np.errstate(invalid="ignore"):
        seriousness = outside.astype(np.int8) + (outside & (ratio > 10)) + (outside & (ratio > 1000))
    seriousness[outside & ~np.isfinite(value)] = _MARKS.index("n")
    seriousness[missing] = _MARKS.index("u")
    grid = seriousness.reshape(-1, seriousness.shape[-1] if seriousness.ndim >= 2 else 1)
    rows, columns = grid.shape
    row_step, column_step = _step(rows, tile), _step(columns, tile)
    cells = np.maximum.reduceat(grid, range(0, rows, row_step), axis=0)
    cells = np.maximum.reduceat(cells, range(0, columns, column_step), axis=1)
    return ErrorMap(
        rows=rows,
        columns=columns,
        row_step=row_step,
        column_step=column_step,
        tile=tile,
        cells=tuple("".join(_MARKS[mark] for mark in line) for line in cells),
    )


def _step(extent: int, tile: int) -> int:
    """Return the smallest step that fits `extent` into the map and keeps tile lines on cell borders."""
    step = max(1, -(-extent // MAP_CELLS))
    while tile % step and step % tile:
        step += 1
    return step


def _named(output: str, element: Element) -> str:
    place = f"{output}[{','.join(map(str, element.index))}]"
    if element.got is None:
        return f"{place}: got NaN, expected {element.expected:.4g}"
    got, expected = _told_apart(element.got, element.expected)
    share = "" if element.ratio is None else f" ({_times(element.ratio)} the bound)"
    return f"{place}: got {got}, expected {expected}{share}"


def _told_apart(got: float, expected: float) -> tuple[str, str]:
    """Print two numbers with four digits, or with as many as it takes to see that they differ."""
    for digits in range(4, 17):
        texts = f"{got:.{digits}g}", f"{expected:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _times(ratio: float) -> str:
    if ratio >= 1e6:
        return f"{ratio:.0e}x"
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x"
