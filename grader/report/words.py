"""Numbers, counts and student text in words that are safe and short enough to print."""

from __future__ import annotations

import re
from collections.abc import Iterable

from grader.records import Element, Status

STATUS_WORDS: dict[Status, str] = {"pass": "PASS", "fail": "FAIL", "skip": "SKIP", "error": "ERROR"}

# Control characters (ANSI escapes begin with one), marks that reorder text ("Trojan Source"), characters
# that take no room, and lone surrogates, which no encoding can carry.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_ASCII = str.maketrans(
    {
        "\u00d7": "x", "\u2026": "...", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u201c": '"',
        "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00b7": "-", "\u2264": "<=", "\u2265": ">=",
        "\u221a": "sqrt", "\u2192": "->", "\u00b1": "+-", "\u00a0": " ", "\u00b5": "u",
    }
)  # fmt: skip


def visible(text: str) -> str:
    """Return `text` with everything that could act on a terminal or reorder a page spelled out.

    Newlines and tabs stay; an escape character becomes the four characters `\\x1b`.
    """
    return _INVISIBLE.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """Return `text` made visible, on one line."""
    return " ".join(visible(text).split())


def encodable(text: str, encoding: str) -> str:
    """Return `text` spelled with what `encoding` has: "x" for the multiplication sign, `\\u4f60` at worst."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        known = "ascii" if _unknown(encoding) else encoding
        return text.translate(_ASCII).encode(known, "backslashreplace").decode(known)
    return text


def _unknown(encoding: str) -> bool:
    try:
        "".encode(encoding)
    except LookupError:
        return True
    return False


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, and say how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n\u2026 ({len(text) - limit:,} more characters)"


def number(points: float) -> str:
    """Return points as people write them: 6, 6.5."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def count(n: float, noun: str) -> str:
    """Return "1 case", "7 cases", "2.5 points"."""
    return f"{number(n)} {noun}" if n == 1 else f"{number(n)} {noun}s"


def shape(dims: Iterable[int]) -> str:
    """Return a shape as Python writes it: (113, 64)."""
    dims = tuple(dims)
    return f"({dims[0]},)" if len(dims) == 1 else "(" + ", ".join(map(str, dims)) + ")"


def dims(sizes: dict[str, int]) -> str:
    """Return "N=113 d=64"."""
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def ratio(used: float | None) -> str:
    """Return how much of the bound an error used: "0.31 of the bound", "91\u00d7 the bound"."""
    if used is None:
        return "not finite"
    if used <= 1:
        return f"{used:.2f} of the bound"
    return f"{used:.2g}\u00d7 the bound" if used < 10 else f"{_thousands(used)}\u00d7 the bound"


def _thousands(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"


def value(x: float | None) -> str:
    """Return one element in at most nine characters; NaN for what was never a number."""
    return "NaN" if x is None else f"{x:.4g}"


def row(values: Iterable[float | None]) -> list[str]:
    """Return the elements of a row, in fixed point where that reads well: -0.0183, 0.4100."""
    values = list(values)
    most = max((abs(x) for x in values if x is not None), default=0.0)
    fixed = 0.01 <= most < 1000
    return ["NaN" if x is None else f"{x:.4f}" if fixed else f"{x:.4g}" for x in values]


def pair(element: Element) -> tuple[str, str]:
    """Return what was got and what was expected, with as many digits as it takes to tell them apart."""
    got, expected = element.got, element.expected
    if got is None:
        return "NaN", value(expected)
    for digits in range(4, 10):
        texts = f"{got:.{digits}g}", f"{expected:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def place(output: str, element: Element) -> str:
    """Return "O[112, 7]"."""
    return f"{output}[{', '.join(map(str, element.index))}]"


def seconds(duration: float) -> str:
    """Return a duration with its unit: 0.4 ms, 812 ms, 1.31 s."""
    if duration >= 1:
        return f"{duration:.2f} s"
    return f"{duration * 1e3:.0f} ms" if duration >= 0.01 else f"{duration * 1e3:.2g} ms"


def size(n: int) -> str:
    """Return a number of bytes with its unit: 512 B, 29.0 KB, 1.5 MB."""
    if n < 1024:
        return f"{n} B"
    return f"{n / 1024:.1f} KB" if n < 1024**2 else f"{n / 1024**2:.1f} MB"


def listed(names: Iterable[str], at_most: int = 6) -> str:
    """Return names in quotes, the first few and how many more there are."""
    quoted = [f'"{name}"' for name in names]
    more = len(quoted) - at_most
    return ", ".join(quoted[:at_most]) + (f" and {more} more" if more > 0 else "")
