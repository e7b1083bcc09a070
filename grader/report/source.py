"""The student's file as marked-up lines: highlighted, escaped, folded where nobody says anything."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from grader.report import words
from grader.report.view import Note

_CONTEXT = 4  # lines shown around a line with a message
_FOLD = 6  # a shorter run of silent lines is shown rather than folded
_MOST_COLUMNS = 400
_MOST_HIGHLIGHTED = 100_000  # characters; beyond, plain text does
_MOST_FOLDED = 3_000  # lines; folded parts of longer files are left out of the page


@dataclass(frozen=True)
class Line:
    """One line of the file: HTML that is safe to insert, and what there is to say about it."""

    number: int
    html: str
    notes: tuple[Note, ...]
    more_notes: int

    @property
    def kind(self) -> str:
        """The gravest kind of its messages, "" for a line without any."""
        kinds = {note.kind for note in self.notes}
        return next((kind for kind in ("error", "warning", "advice") if kind in kinds), "")


@dataclass(frozen=True)
class Chunk:
    """A run of lines. A folded one opens on demand; an omitted one has no lines, only their numbers."""

    first: int
    last: int
    folded: bool
    lines: tuple[Line, ...]


def chunks(html: list[str], notes: dict[int, list[Note]], *, most_notes: int = 4) -> list[Chunk]:
    """Return `highlighted` lines as runs, those around a message open and the others folded."""
    opened = _opened(len(html), notes)
    leave_out = len(html) > _MOST_FOLDED or sum(map(len, html)) > 4 * _MOST_HIGHLIGHTED
    found = []
    for first, last, folded in _runs(len(html), opened):
        lines = tuple(
            Line(
                n,
                html[n - 1],
                tuple(notes.get(n, ())[:most_notes]),
                max(0, len(notes.get(n, ())) - most_notes),
            )
            for n in range(first, last + 1)
        )
        found.append(Chunk(first, last, folded, () if folded and leave_out else lines))
    return found


def excerpt(html: list[str], line: int, *, around: int = 2) -> list[Line]:
    """Return the `highlighted` lines around `line`; none when the file has no such line."""
    if not 0 < line <= len(html):
        return []
    first, last = max(1, line - around), min(len(html), line + around)
    return [Line(n, html[n - 1], (), 0) for n in range(first, last + 1)]


def _opened(total: int, notes: dict[int, list[Note]]) -> set[int]:
    return {
        line
        for noted in notes
        if 0 < noted <= total
        for line in range(max(1, noted - _CONTEXT), min(total, noted + _CONTEXT) + 1)
    }


def _runs(total: int, opened: set[int]) -> Iterator[tuple[int, int, bool]]:
    """Yield (first, last, folded), every line in one run, no folded run too short to be worth a click."""
    pieces: list[tuple[int, int, bool]] = []
    for folded, group in itertools.groupby(range(1, total + 1), key=lambda line: line not in opened):
        lines = list(group)
        pieces.append((lines[0], lines[-1], folded and (len(lines) > _FOLD or not opened)))
    for hidden, run in itertools.groupby(pieces, key=lambda piece: piece[2]):
        same = list(run)
        yield same[0][0], same[-1][1], hidden


def highlighted(source: str) -> list[str]:
    """Return each line of CUDA C++ as escaped HTML whose spans carry one-letter classes.

    k keyword, t type, c comment, s string or character, n number, p preprocessor, f CUDA's own name.
    """
    source = "\n".join(_clipped(line) for line in words.visible(source).split("\n"))
    if len(source) > _MOST_HIGHLIGHTED:
        return [_escape(line) for line in source.removesuffix("\n").split("\n")]
    return _spans(source.removesuffix("\n"))


def _clipped(line: str) -> str:
    if len(line) <= _MOST_COLUMNS:
        return line
    return f"{line[:_MOST_COLUMNS]} … ({len(line) - _MOST_COLUMNS:,} more characters)"


def _spans(source: str) -> list[str]:
    from pygments.lexers.c_like import CudaLexer  # type: ignore[import-untyped]
    from pygments.token import Comment, Keyword, Name, Number, String  # type: ignore[import-untyped]

    # The first that a token belongs to counts. To Pygments, CUDA's variables are builtins.
    classes = (
        (Comment.Preproc, "p"),
        (Comment.PreprocFile, "s"),
        (Comment, "c"),
        (Keyword.Type, "t"),
        (Keyword, "k"),
        (Name.Builtin, "f"),
        (String, "s"),
        (Number, "n"),
    )
    lines = [""]
    lexer = CudaLexer(stripnl=False, ensurenl=False)
    for token, text in lexer.get_tokens(source):
        css = next((name for kind, name in classes if token in kind), "")
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append("")
            if part:
                safe = _escape(part)
                lines[-1] += f'<span class="{css}">{safe}</span>' if css and part.strip() else safe
    return lines


def _escape(text: str) -> str:
    from markupsafe import escape

    return str(escape(text))
