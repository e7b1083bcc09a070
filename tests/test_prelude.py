"""Precompiled headers: only what the file includes first, so that nothing that is missing goes unnoticed."""

import pytest

from grader.emulator import prelude


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("// a comment\n\n#include <vector>\n#include <cmath>  // sqrtf\n", ("cmath", "vector")),
        ("#include <cmath>\n#define NDEBUG\n#include <cassert>\n", ("cmath",)),
        ("#include <cmath>\nint x;\n#include <vector>\n", ("cmath",)),
        ('#include "mine.h"\n#include <cmath>\n', ()),
        ("/* #include <vector>\n*/ #include <cmath>\n", ()),
        ("#if 1\n#include <cmath>\n#endif\n", ()),
        ("", ()),
    ],
)
def test_only_known_headers_before_anything_else_count(text, expected):
    assert prelude.headers(text) == expected


def test_the_order_of_the_includes_does_not_matter():
    assert prelude.headers("#include <vector>\n#include <cmath>") == prelude.headers(
        "#include <cmath>\n#include <vector>"
    )
