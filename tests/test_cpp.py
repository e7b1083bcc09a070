"""Reading C++ as far as the grader must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader import cpp

FRAGMENTS = st.sampled_from(
    [
        "/*",
        "*/",
        "//",
        '"',
        "'",
        "\\",
        "\n",
        "\r\n",
        'R"x(',
        ')x"',
        'u8R"(',
        ')"',
        "a",
        " ",
        "1'000",
        "{",
        "}",
        "#if 0\n",
    ]
)


@given(st.lists(FRAGMENTS, max_size=30).map("".join))
def test_masking_keeps_length_and_line_breaks(text: str) -> None:
    """Offsets and lines must hold in the masked text, whatever nonsense is in the file."""
    for masked in (cpp.mask(text), cpp.active(text), cpp.active(text, directives=True)):
        assert len(masked) == len(text)
        assert [at for at, c in enumerate(masked) if c == "\n"] == [
            at for at, c in enumerate(text) if c == "\n"
        ]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("a // b\nc", "a     \nc"),
        ("a // b \\\n d\nc", "a      \\\n  \nc"),
        ("a /* b\n */ c", "a     \n    c"),
        ('f("a // b", x)', 'f("      ", x)'),
        ("f('\"', x)", "f(' ', x)"),
        ("1'000'000 + x", "1'000'000 + x"),
        ('R"x(a)" b)x" + c', ' "         " + c'),
        (r'"a\"b" c', '"    " c'),
        ("don't\nx", "don't\nx"),
    ],
)
def test_comments_and_literals_become_spaces(text: str, masked: str) -> None:
    """Only code is left; quotes stay in their places."""
    assert cpp.mask(text) == masked


SOURCE = r"""
#define d 64
#define WRONG(x) void from_macro(int x) {
namespace fa { namespace {
template <typename T, int D = (3 > 2)>
__global__ void __launch_bounds__(256, 2) kernel(const T* __restrict__ a, std::pair<int, T> p) { if (a) { } }
struct S { int x; static void run(float* q) { } void member(int a) {} };
inline namespace v1 { extern "C" void declared(float *Q,
   const float* /* K */ K, int N = 3); }
} }
extern "C" { void in_c(const float*Q) {} }
auto lambda = [](int x) { return x; };
int table[] = {1,2,3}; dim3 block(16, 16);
#if 0
void dead() {
#endif
static std::vector<std::pair<int,float>> nested(const std::map<int,int>& m) noexcept { return {}; }
#ifdef X
void branch(int a) {
#else
void branch(float a) {
#endif
}
void fa::outside(void) {}
const char* text = R"x( void in_string() { )x"; char quote = '"'; // void in_comment() {}
[[nodiscard]] unsigned long long attribute(unsigned n[4]) { }
__device__ __forceinline__ float4 device(float4 a) { return a; }
int main(int argc, char** argv) { return 0; }
"""


TEMPLATE = (
    "template <typename T, int D = (3 > 2)> void fa::kernel(const T* __restrict__ a, std::pair<int, T> p)"
)


def test_functions_are_found_with_their_signatures() -> None:
    """Namespaces, templates, attributes, dead code and macros are read as people read them."""
    found = [(f.line, f.signature) for f in cpp.functions(SOURCE)]
    assert found == [
        (
            6,
            TEMPLATE,
        ),
        (7, "void fa::S::run(float* q)"),
        (8, "void fa::v1::declared(float *Q, const float* K, int N = 3)"),
        (11, "void in_c(const float*Q)"),
        (17, "std::vector<std::pair<int,float>> nested(const std::map<int,int>& m)"),
        (19, "void branch(int a)"),
        (24, "void fa::outside()"),
        (26, "unsigned long long attribute(unsigned n[4])"),
        (27, "float4 device(float4 a)"),
        (28, "int main(int argc, char** argv)"),
    ]


def test_kernels_templates_and_declarations_are_told_apart() -> None:
    """Each flag is true for exactly the functions it is about."""
    functions = cpp.functions(SOURCE)
    assert [f.name for f in functions if f.is_kernel] == ["kernel"]
    assert [f.name for f in functions if f.is_template] == ["kernel"]
    assert [f.name for f in functions if f.is_device] == ["device"]
    assert [f.name for f in functions if not f.is_definition] == ["declared"]


def test_a_host_definition_is_preferred() -> None:
    """A kernel of the same name, and a declaration, come after the definition that can be called."""
    text = "__global__ void f(int a) {}\nvoid f(float b);\nvoid f(float b) {}\n"
    found = cpp.find_function(text, "f")
    assert found is not None
    assert (found.line, found.is_definition) == (3, True)
    assert cpp.find_function(text, "g") is None


@pytest.mark.parametrize(
    "text", ["void f(int a", "}}}", "void f() { {", "((((", "template <", "namespace {", '"']
)
def test_broken_files_do_not_break_the_reader(text: str) -> None:
    """Half-typed files are everyday input."""
    cpp.functions(text)


def test_crlf_and_tabs_change_nothing() -> None:
    """A file from Windows has the same functions on the same lines."""
    crlf = SOURCE.replace("\n", "\r\n").replace("   ", "\t")
    assert [(f.name, f.line) for f in cpp.functions(crlf)] == [
        (f.name, f.line) for f in cpp.functions(SOURCE)
    ]


def test_commas_split_outside_brackets_and_template_arguments() -> None:
    """`a < b, c > d` is two comparisons for C++ only with luck; std::pair<a, b> is one type."""
    assert cpp.split_commas("std::pair<int, float> p, f(a, b), x[i, j], y") == [
        "std::pair<int, float> p",
        " f(a, b)",
        " x[i, j]",
        " y",
    ]
