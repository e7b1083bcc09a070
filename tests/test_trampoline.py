"""The trampoline calls what students write, whatever they `#define`, with every compiler."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from grader import trampoline
from grader.records import Entry, Parameter

STUB = """#pragma once
#define __global__
#define __device__
#define __host__
typedef struct grader_st* cudaStream_t;
"""


def array(name: str, role: str = "in", dtype: str = "float32") -> Parameter:
    return Parameter(name=name, role=role, dtype=dtype, dims=("N",))  # type: ignore[arg-type]


def scalar(name: str, dtype: str = "int") -> Parameter:
    return Parameter(name=name, role="scalar", dtype=dtype)  # type: ignore[arg-type]


ENTRY = Entry(
    name="forward",
    function="forward",
    parameters=(array("Q"), array("O", "out"), scalar("N"), scalar("scale", "float")),
    reference="forward",
)


def compile_with(
    compiler: str, text: str, folder: Path, entry: Entry = ENTRY
) -> subprocess.CompletedProcess[str]:
    (folder / "flash_attention.cu").write_text(text)
    (folder / "stub.h").write_text(STUB)
    (folder / "t.cu").write_text(trampoline.generate([entry], "flash_attention.cu", text).text)
    command = [compiler, "-x", "c++", "-std=c++17", "-O0", "-fPIC", "-shared", "-include", "stub.h", "t.cu"]
    return subprocess.run([*command, "-o", "t.so"], cwd=folder, capture_output=True, text=True, check=False)


def call(folder: Path, entry: Entry = ENTRY) -> tuple[int, list[float], str]:
    library = ctypes.CDLL(str(folder / "t.so"))
    query, output = (ctypes.c_float * 3)(1, 2, 3), (ctypes.c_float * 3)()
    N, scale = ctypes.c_int(3), ctypes.c_float(2.0)
    arguments = (ctypes.c_void_p * 4)(
        ctypes.cast(query, ctypes.c_void_p),
        ctypes.cast(output, ctypes.c_void_p),
        ctypes.cast(ctypes.byref(N), ctypes.c_void_p),
        ctypes.cast(ctypes.byref(scale), ctypes.c_void_p),
    )
    code = library.grader_call_0(arguments)
    return code, list(output), (ctypes.c_char * 256).in_dll(library, "grader_exception").value.decode()


BODY = "{ for (int i = 0; i < n; ++i) o[i] = q[i] * s; }"
PLAIN = f"void forward(const float* q, float* o, int n, float s) {BODY}"
ACCEPTED = {
    "const pointers": PLAIN,
    "non-const pointers": f"void forward(float* q, float* o, int n, float s) {BODY}",
    "other numbers": f"void forward(float* q, float* o, long long n, double s) {BODY}",
    "static with a status": f"static int forward(float* q, float* o, int n, float s) {{ {BODY} return 3; }}",
    "extern C": f'extern "C" {{ {PLAIN} }}',
    "a namespace": f"namespace fa {{ inline namespace v {{ {PLAIN} }} }}",
    "a static member": f"struct S {{ static {PLAIN} }};",
    "a template": f"template <class T> void forward(const T* q, T* o, int n, float s) {BODY}",
    "overloads": f"void forward(float* q) {{}}\n{PLAIN}",
    "a kernel of the same name": f"__global__ void forward(int) {{}}\n{PLAIN}",
    "macros": f"""
#define d 64
#define N 1024
#define FP float
#define T int
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define call wrong
#define arguments wrong
#define value 3
void forward(FP* q, FP* o, int n, FP s) {BODY}
""",
    "keywords as macros": f"{PLAIN}\n#define float half\n#define void bad\n#define try bad",
    "main with arguments": f"{PLAIN}\n// int main() is below\nint main(int argc, char** argv) {{}}",
    "void main": f"{PLAIN}\nvoid main() {{}}",
    "a main that calls the entry": f"{PLAIN}\nint main() {{ float a[1] = {{1}}; forward(a, a, 1, 1); }}",
}
FORMS = [("g++", form) for form in ACCEPTED] + [
    ("clang++", form) for form in ("macros", "a template", "keywords as macros", "a static member")
]


@pytest.mark.parametrize(("compiler", "form"), FORMS)
def test_what_cpp_accepts_is_called(compiler: str, form: str, tmp_path: Path) -> None:
    """Each of these is a way in which a student may write the entry, and each is called and computes."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    done = compile_with(compiler, ACCEPTED[form], tmp_path)
    assert done.returncode == 0, done.stderr
    assert call(tmp_path) == (0, [2.0, 4.0, 6.0], "")


@pytest.mark.parametrize(
    "text",
    [
        "void forward(int* q, float* o, int n, float s) {}",
        "void forward(float* q, float* o, int n) {}",
        "void forwards(float* q, float* o, int n, float s) {}",
        "template <int D> void forward(float* q, float* o, int n, float s) {}",
        "__global__ void forward(float* q, float* o, int n, float s) {}",
    ],
)
def test_another_signature_is_an_error_on_the_line_of_the_call(text: str, tmp_path: Path) -> None:
    """A signature that does not fit gives an error on the very line that the map names."""
    done = compile_with("g++", text, tmp_path)
    assert done.returncode != 0
    lines = trampoline.generate([ENTRY], "flash_attention.cu", text).lines
    assert any(f"t.cu:{line}:" in done.stderr for line in lines), done.stderr


def test_an_exception_becomes_a_code_and_its_text(tmp_path: Path) -> None:
    """what() is kept, cut to the buffer; the caller sees code 1 and no C++ exception."""
    text = """#include <stdexcept>
#include <string>
void forward(float*, float*, int, float) { throw std::runtime_error("bad " + std::string(300, 'x')); }
"""
    assert compile_with("g++", text, tmp_path).returncode == 0
    code, _, message = call(tmp_path)
    assert code == 1
    assert message == "bad " + "x" * 251


def test_every_dtype_has_its_pointer_and_headers_only_where_needed() -> None:
    """The half headers are included for half arguments alone: they are slow to compile."""
    entry = Entry(
        "f", "f", (array("X", dtype="float16"), array("M", dtype="uint8"), scalar("n", "int64")), "f"
    )
    text = trampoline.generate([entry], "x.cu", "").text
    assert "cuda_fp16.h" in text
    assert "cuda_bf16.h" not in text
    assert "unsigned char* grader_uint8_array" in text


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_same_trampoline_compiles_with_nvcc(tmp_path: Path) -> None:
    """nvcc takes the unmodified file, launches included, through the same trampoline."""
    text = """
#define d 64
#define N 1024
template <int D> __global__ void k(const float* q, float* o) { o[0] = q[0] * D; }
namespace fa {
void forward(float* q, float* o, int n, float s, cudaStream_t t) { k<d><<<1, 1, 0, t>>>(q, o); }
}
int main() { return 0; }
"""
    (tmp_path / "flash_attention.cu").write_text(text)
    entry = Entry("f", "forward", (*ENTRY.parameters, Parameter("stream", "stream", "stream")), "f")
    (tmp_path / "t.cu").write_text(trampoline.generate([entry], "flash_attention.cu", text).text)
    command = ["nvcc", "-std=c++17", "-O0", "-Xcompiler", "-fPIC", "-shared", "t.cu", "-o", "t.so"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
