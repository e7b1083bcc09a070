"""An output seen from above, as SVG: where the wrong elements are, with the tiles drawn over them."""

from __future__ import annotations

from dataclasses import dataclass

from grader.records import ErrorMap

KINDS = {
    "1": "outside the bound",
    "2": "outside by more than 10 times",
    "3": "outside by more than 1000 times",
    "n": "NaN or infinite",
    "u": "never written",
}
_BADNESS = ".123nu"
_WIDTH = 300.0
_HEIGHT = 360.0
_LARGEST = 24.0  # pixels of an element's side: a one by one output needs no poster
_SMALLEST = 24.0  # pixels of the shorter side of a map
_MOST_RUNS = 600
_MOST_LINES = 48


@dataclass(frozen=True)
class Layer:
    """All cells of one kind, as the data of one SVG path."""

    kind: str
    words: str
    path: str


@dataclass(frozen=True)
class Drawing:
    """An error map in pixels: its layers, its tile lines, and what its axes say."""

    width: float
    height: float
    layers: tuple[Layer, ...]
    tile_lines: str
    row_labels: tuple[tuple[float, int], ...]
    last_row: int
    last_column: int
    words: str


def draw(error_map: ErrorMap) -> Drawing:
    """Return the drawing of a map, coarser where it is too ragged for a page (the worst element wins)."""
    cells, row_step, column_step = list(error_map.cells), error_map.row_step, error_map.column_step
    rectangles = _rectangles(cells)
    while len(rectangles) > _MOST_RUNS:
        cells = _coarser(cells)
        row_step, column_step = 2 * row_step, 2 * column_step
        rectangles = _rectangles(cells)
    width, height = _size(error_map)
    x_scale, y_scale = width / error_map.columns, height / error_map.rows
    paths: dict[str, list[str]] = {}
    for kind, row, column, rows, columns in rectangles:
        left, top = column * column_step * x_scale, row * row_step * y_scale
        right = min((column + columns) * column_step, error_map.columns) * x_scale
        bottom = min((row + rows) * row_step, error_map.rows) * y_scale
        path = f"M{left:.4g} {top:.4g}H{right:.4g}V{bottom:.4g}H{left:.4g}z"
        paths.setdefault(kind, []).append(path)
    layers = tuple(Layer(kind, KINDS[kind], "".join(paths[kind])) for kind in KINDS if kind in paths)
    return Drawing(
        width=width,
        height=height,
        layers=layers,
        tile_lines=_tile_lines(error_map, width, height),
        row_labels=_row_labels(error_map, height),
        last_row=error_map.rows - 1,
        last_column=error_map.columns - 1,
        words=_words(error_map, layers),
    )


def _size(error_map: ErrorMap) -> tuple[float, float]:
    width = max(min(_WIDTH, _LARGEST * error_map.columns), 3 * _SMALLEST)
    height = min(width * error_map.rows / error_map.columns, _LARGEST * error_map.rows, _HEIGHT)
    return width, max(height, _SMALLEST)


def _rectangles(cells: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Return (kind, row, column, rows, columns): runs within a row, joined with the same run below."""
    found: list[tuple[str, int, int, int, int]] = []
    growing: dict[tuple[str, int, int], int] = {}  # (kind, column, columns) -> first row
    for row, line in enumerate([*cells, ""]):
        runs = dict.fromkeys(_runs(line), row)
        for run, first in growing.items():
            if run in runs:
                runs[run] = first
            else:
                found.append((run[0], first, run[1], row - first, run[2]))
        growing = runs
    return found


def _runs(line: str) -> list[tuple[str, int, int]]:
    runs: list[tuple[str, int, int]] = []
    start = 0
    for column in range(1, len(line) + 1):
        if column == len(line) or line[column] != line[start]:
            if line[start] != ".":
                runs.append((line[start], start, column - start))
            start = column
    return runs


def _coarser(cells: list[str]) -> list[str]:
    """Return a map of half the rows and columns, each cell the worst of four."""
    half = []
    for row in range(0, len(cells), 2):
        pair = cells[row : row + 2]
        columns = range(0, len(pair[0]), 2)
        half.append(
            "".join(max("".join(line[c : c + 2] for line in pair), key=_BADNESS.index) for c in columns)
        )
    return half


def _tile_lines(error_map: ErrorMap, width: float, height: float) -> str:
    """Return the path of the tile borders inside the map, every n-th of them where they would crowd."""
    rows = _borders(error_map.rows, error_map.tile)
    columns = _borders(error_map.columns, error_map.tile)
    across = "".join(f"M0 {row * height / error_map.rows:.4g}H{width:.4g}" for row in rows)
    down = "".join(f"M{column * width / error_map.columns:.4g} 0V{height:.4g}" for column in columns)
    return across + down


def _borders(extent: int, tile: int) -> range:
    every = -(-extent // (tile * _MOST_LINES))
    return range(tile * every, extent, tile * every)


def _row_labels(error_map: ErrorMap, height: float) -> tuple[tuple[float, int], ...]:
    """Return (y, row) for the tile borders that have room for a label, the first row and the last."""
    labels = [(4.0, 0)]
    for row in _borders(error_map.rows, error_map.tile):
        y = row * height / error_map.rows
        if y - labels[-1][0] >= 14:
            labels.append((y, row))
    return tuple(labels)


def _words(error_map: ErrorMap, layers: tuple[Layer, ...]) -> str:
    """Return what the picture shows, for someone who cannot see it: the rows and columns of each kind."""
    parts = []
    for layer in layers:
        rows = [r for r, line in enumerate(error_map.cells) if layer.kind in line]
        columns = [c for line in error_map.cells for c, kind in enumerate(line) if kind == layer.kind]
        if rows:
            across = _span("row", rows, error_map.row_step, error_map.rows)
            down = _span("column", columns, error_map.column_step, error_map.columns)
            parts.append(f"{layer.words} in {across}, {down}")
    return "; ".join(parts) or "every element is inside the bound"


def _span(noun: str, cells: list[int], step: int, extent: int) -> str:
    first, last = min(cells) * step, min((max(cells) + 1) * step, extent) - 1
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"
