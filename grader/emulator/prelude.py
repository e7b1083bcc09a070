"""The headers that a file includes first: precompiled, they save half of its compile time.

Only headers of the standard library and `cuda_runtime.h`, and only those that stand before the first line of
code or of another directive: what follows could change what a header means (`#define NDEBUG`). A precompiled
header holds just what the file includes, never more, so that a missing `#include` stays an error.
"""

from __future__ import annotations

import re

from grader import cpp

_INCLUDE = re.compile(r"\s*#\s*include\s*[<\"](?P<name>[\w./]+)[>\"]\s*")
_KNOWN = frozenset(
    """algorithm array assert.h atomic cassert cfloat chrono climits cmath complex cstddef cstdint cstdio
    cstdlib cstring ctime cuda_runtime.h float.h fstream functional initializer_list iomanip iostream
    iterator limits limits.h map math.h memory numeric ostream random set sstream stdexcept stdint.h
    stdio.h stdlib.h string string.h thread time.h tuple type_traits unordered_map utility vector""".split()  # noqa: SIM905
)


def headers(text: str) -> tuple[str, ...]:
    """Return the known headers that `text` includes before anything else, in a fixed order."""
    found = set()
    for line, masked in zip(text.split("\n"), cpp.mask(text).split("\n"), strict=True):
        if not masked.strip():
            continue
        match = _INCLUDE.fullmatch(line.partition("//")[0])
        if match is None or match["name"] not in _KNOWN:
            break
        found.add(match["name"])
    return tuple(sorted(found))


def source(names: tuple[str, ...]) -> str:
    """Return the header to precompile: the runtime, which is included first in any case, then `names`."""
    return "".join(f"#include <{name}>\n" for name in ("cuda_runtime.h", *names))
