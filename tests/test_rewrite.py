"""Launches and shared variables become C++ without a line moving."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import cpp, emulator
from grader.emulator.rewrite import rewrite

# One block of one thread: enough to see that the right code runs with the right values.
STUB = r"""
#pragma once
#include <cstddef>
#include <cstdio>
#define __global__
#define __device__
#define __shared__ static
struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
namespace grader_rt {
struct Config { dim3 g, b; };
inline Config config(dim3 g, dim3 b, std::size_t = 0, void* = nullptr) { return {g, b}; }
template <class... P> struct Launcher { void (*f)(P...); void operator()(P... p) const { f(p...); } };
template <class... P> Launcher<P...> launch(const char*, int, void (*f)(P...), Config) { return {f}; }
template <class F> F launch_with(const char* name, int line, F f, Config) {
  std::printf("[%s:%d]", name, line);
  return f;
}
template <class T, std::size_t... N> struct A { using type = T; };
template <class T, std::size_t N, std::size_t... R> struct A<T, N, R...> {
  using type = typename A<T, R...>::type[N];
};
template <class T, std::size_t... N> using array_t = typename A<T, N...>::type;
template <int U, class T> T* shared() { static T place; return &place; }
static char dynamic[4096];
template <class T> struct Dynamic { operator T*() const { return (T*)dynamic; } };
}
#define GRADER_SHARED_VARIABLE(u, l, name, ...) auto& name = *::grader_rt::shared<u, __VA_ARGS__>()
#define GRADER_SHARED_DYNAMIC(l, name, ...) __VA_ARGS__* const name = (__VA_ARGS__*)::grader_rt::dynamic
#define GRADER_SHARED_DYNAMIC_FILE(l, name, ...) static ::grader_rt::Dynamic<__VA_ARGS__> name
#define GRADER_SHARED_STATIC(u, l, name, ...) static __VA_ARGS__ name
"""

PROGRAM = r"""
#include <utility>
#include <cstdio>
extern __shared__ float file_dynamic[];
__shared__ int file_static[4];
namespace ns { __global__ void in_namespace(int a) { printf("n%d ", a); } }
__global__ void plain(const float* p, int a) { printf("p%d%d ", p == nullptr, a); }
template <typename T, int D> __global__ void typed(T* p, int a) {
    __shared__ T tile[D][D + 1], *pointer, single;
    extern __shared__ __align__(16) T dynamic[];
    tile[D - 1][D] = T(a); pointer = &tile[0][0]; single = T(sizeof(tile));
    dynamic[0] = single; file_dynamic[1] = 2;
    int last = int(pointer[(D - 1) * (D + 1) + D]);
    printf("t%d,%d,%d,%d ", last, int(single), int(dynamic[0]), p == nullptr);
}
template <class T> __global__ void deduced(T a, T b) { printf("d%d ", int(a + b)); }
__global__ void overloaded(int a) { printf("oi%d ", a); }
__global__ void overloaded(float* a) { printf("of "); }
__global__ void several() {
    __shared__ __align__(16) float
        Q[4][8],   // rows of <<<Q>>>
        K[2];
    static __shared__ std::pair<int, float> pairs[3];
    volatile __shared__ unsigned int u;
    float __shared__ after[5];
    __shared__ struct { int x; } odd;
    alignas(16) __shared__ char c[3];
    u = 7; odd.x = 1; file_static[0] = 3;
    int sizes = int(sizeof(Q) + sizeof(K) + sizeof(pairs));
    printf("s%d,%d,%d,%d ", sizes, int(u), int(sizeof(after)), int(sizeof(c)));
}
#define LAUNCH(name, T, ...) name<T, 2><<<dim3(1, 1), \
    1>>>(__VA_ARGS__)
#define CONFIGURED(kernel) kernel<<<1, 1>>>
#define TILE(name) __shared__ float name[3]
#define CHECK(x) do { x; } while (0)
__global__ void macros() { TILE(a); TILE(b); a[0] = 1; b[0] = 2; printf("m%d ", int(a[0] + b[0])); }
struct Holder { void (*kernel)(int); };
template <int D> void dispatch(int a) { typed<float, D><<<1, 1>>>(nullptr, a); }
int main() {
    int a = 5, b = 2, c = 1; (void)c;
    if (a < b >> c) a <<= 3; a <<= 1; a >>= 1;
    plain<<<1, 2>>>(NULL, a);
    plain <<< dim3(1, 2), /* >>> */ (a >> 1), 0, 0 >>> (0, a << 2);
    ns::in_namespace<<<(1 > 0 ? 1 : 2), sizeof("<<<)")>>>(a); // plain<<<1, 2>>>(a)
    typed<float, (3 > 2)><<<
        1, 1>>>
        (NULL,
         a);
    LAUNCH(typed, float, nullptr, 6); CONFIGURED(macros)();
    deduced<<<1, 1>>>(a, b); overloaded<<<1, 1>>>(a); overloaded<<<1, 1>>>((float*)nullptr);
    void (*pointer)(int) = ns::in_namespace; (*pointer)<<<1, 1>>>(8); pointer<<<1, 1>>>(9);
    Holder holder{pointer}; holder.kernel<<<1, 1>>>(1); Holder* h = &holder; h->kernel<<<1, 1>>>(2);
    void (*table[])(int) = {pointer}; table[0]<<<1, 1>>>(3);
    if (a) plain<<<1, 1>>>(0, 1); else plain<<<1, 1>>>(0, 2);
    switch (a) { default:plain<<<1, 1>>>(0, 4); }
    CHECK((typed<int, 4><<<1, 1>>>(nullptr, 9)));
    dispatch<2>(3); ::plain<<<1, 1>>>(0, 5); several<<<1, 1>>>();
    auto in_lambda = [&] { plain<<<1, 1>>>(0, b); }; in_lambda();
    printf("%s\n", "plain<<<1, 1>>>(x) __shared__");
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_rewritten_program_compiles_and_computes(compiler: str, tmp_path: Path) -> None:
    """Every form of launch and declaration that students use runs, with both compilers."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "stub.h").write_text(STUB)
    (tmp_path / "p.cu").write_text(rewrite(PROGRAM).text)
    command = [compiler, "-std=c++17", "-O0", "-x", "c++", "-include", "stub.h", "p.cu", "-o", "p"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output = subprocess.run(["./p"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert re.sub(r"\[[^\]]*:\d+\] ?", "", re.sub(r"table\[0\]", "table", output)) == (
        "p15 p120 n5 t5,8,8,1 t6,24,24,1 m3 d7 oi5 of n8 n9 n1 n2 n3 p11 p14 t9,80,80,1 t3,24,24,1 p15 "
        "s160,7,20,3 p12 plain<<<1, 1>>>(x) __shared__\n"
    )
    line = PROGRAM[: PROGRAM.index("typed<float, (3")].count("\n") + 1
    assert f"[typed<float, (3 > 2)>:{line}]" in output


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_runtime_headers_take_what_the_rewriter_writes(compiler: str, tmp_path: Path) -> None:
    """The macros and functions of include/ and the text agree."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "p.cu").write_text(rewrite(PROGRAM).text)
    flags = emulator.compile_flags("fast", compiler)  # type: ignore[arg-type]
    command = [compiler, *flags, "-x", "c++", "-fsyntax-only", "p.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


NAMES = st.sampled_from(
    ["k", "ns::k", "k<float, 64>", "k<(3 > 2)>", "::k", "(*p)", "t[i]", "o.k", "k<A<B<int>>>"]
)
VALUES = st.recursive(
    st.sampled_from(
        ["N", "32", "d >> 2", "a < b", "'>'", '">>>("', "/* <<< */ 1", "sizeof(float)", "dim3{1, 2}"]
    ),
    lambda inner: st.builds(lambda a, b: f"f({a}, ({b}))", inner, inner),
    max_leaves=4,
)
GAPS = st.sampled_from(["", " ", "\n", "\n  ", " /* >>> */ ", " // <<<\n"])


@st.composite
def launches(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A launch in any layout, and its values."""
    values = draw(st.lists(VALUES, min_size=2, max_size=4))
    arguments = draw(st.lists(VALUES, max_size=3))
    gap = [draw(GAPS) for _ in range(4)]
    config = f",{gap[0]}".join(values)
    text = f"{draw(NAMES)}{gap[1]}<<<{gap[2]}{config}{gap[2]}>>>{gap[3]}({', '.join(arguments)});"
    return text, values + arguments


@given(launches(), st.sampled_from(["if (x) ", "else ", "{ ", "return ", "case 1: ", ""]))
@settings(max_examples=150, deadline=None)
def test_every_launch_becomes_a_call_on_the_same_lines(launch: tuple[str, list[str]], before: str) -> None:
    """No `<<<` is left in the code, no line break moves, and every value stays on its line."""
    text = f"void f() {{\n{before}{launch[0]}\nplain();\n}}\n"
    out = rewrite(text).text
    assert "<<<" not in cpp.mask(out)
    assert "::grader_rt::launch" in out
    assert out.count("\n") == text.count("\n")
    for old, new in zip(text.split("\n"), out.split("\n"), strict=True):
        words = re.findall(r"\w+|\"[^\"]*\"|'.'", old)
        assert all(word in new for word in words), (old, new)


UNTOUCHED = [
    "// k<<<1,2>>>(a)\n",
    '"k<<<1,2>>>(a)"',
    "/* __shared__ float x[3];\n */",
    "'<'",
    'R"(k<<<1, 2>>>(a)\n__shared__)"',
    "a << b;",
    "x <<= 3;",
    "a >> b;",
    "#define A <<\n",
]


@given(st.lists(st.sampled_from(UNTOUCHED), max_size=12).map(" ".join))
def test_text_without_launches_is_untouched(text: str) -> None:
    """Strings, comments and shifts come out as they went in."""
    assert rewrite(text).text == text


@given(st.text(alphabet="k<>(){}[];,\n\\ \"'#=_&*:/", max_size=60))
@settings(max_examples=300)
def test_nonsense_keeps_its_lines(text: str) -> None:
    """A file that is not C++ gets through; the compiler then says what is wrong with it."""
    assert rewrite(text).text.count("\n") == text.count("\n")


def test_lines_are_named_and_macros_name_the_line_of_use() -> None:
    """A report must speak of the line of the launch, which for a macro is where it is expanded."""
    out = rewrite("__global__ void k() {}\nvoid f() {\n  k<<<1, 1>>>();\n}\n#define L k<<<1, 1>>>()\n").text
    assert 'launch("k", 3, k' in out.splitlines()[2]
    assert 'launch("k", __LINE__, k' in out.splitlines()[4]


def test_shared_variables_are_listed() -> None:
    """Reports name shared variables, their types and their lines."""
    shared = rewrite(
        "__global__ void k() {\n __shared__ float Q[32][D+1];\n extern __shared__ half s[];\n}"
    ).shared
    assert [(v.name, v.line, v.type, v.dynamic) for v in shared] == [
        ("Q", 2, "float[32][D+1]", False),
        ("s", 3, "half[]", True),
    ]


def test_an_unreadable_declaration_falls_back_to_static() -> None:
    """What cannot be read stays, and the build learns that blocks must run one by one."""
    text = "__global__ void k() {\n  __shared__ float (*p)[4];\n}\n"
    out = rewrite(text)
    assert out.fallback
    assert out.text == text
    assert not rewrite("__global__ void k() { __shared__ float p[4]; }").fallback


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ('void f() { asm volatile("mov.u32 %0, 1;" : "=r"(x)); }', "inline PTX"),
        ('void f() { asm("wgmma.mma_async" ::); }', "inline PTX (wgmma)"),
        ("CUtensorMap map;", "TMA (a tensor map)"),
        ("__global__ void __cluster_dims__(2, 1, 1) k() {}", "a thread block cluster"),
        ("#include <cute/tensor.hpp>", "CUTLASS"),
        (
            "__global__ void c() {}\n__global__ void k() { c<<<1, 1>>>(); }",
            "a launch inside a kernel (dynamic parallelism)",
        ),
        ("void f() { cudaLaunchCooperativeKernel(0); }", "a cooperative launch"),
        ("cudaTextureObject_t t;", "a texture"),
    ],
)
def test_what_needs_a_gpu_is_named_with_its_line(code: str, what: str) -> None:
    """The student reads what it is, and where."""
    found = rewrite("\n" + code).unsupported
    assert [(one.line, one.what) for one in found] == [(1 + code.count("\n") + 1, what)]


def test_dead_code_and_comments_need_no_gpu() -> None:
    """Inline PTX that the preprocessor removes, or that is only talked about, is no reason to refuse."""
    assert not rewrite('#if 0\nasm("x");\n#endif\n// asm("y")\nconst char* s = "asm(";\n').unsupported
