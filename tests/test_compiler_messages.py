"""What real compilers say about small broken files, as a student reads it."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader import compiler_messages, emulator, trampoline
from grader.emulator import rewrite
from grader.records import Entry, Parameter

ENTRY = Entry(
    name="forward",
    function="attention",
    parameters=(
        Parameter("Q", "in", "float32", ("N",)),
        Parameter("O", "out", "float32", ("N",)),
        Parameter("N", "scalar", "int"),
    ),
    reference="forward",
)
HEAD = "void attention(const float* q, float* o, int n) {\n"
NAME = "flash_attention.cu"


def read(compiler: str, text: str, folder: Path, *, link: bool = False) -> compiler_messages.Report:
    """Compile a text as the grader does and read the answer."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    cuda = compiler == "nvcc"
    (folder / NAME).write_text(text if cuda else rewrite.rewrite(text).text)
    (folder / "grader_trampoline.cu").write_text(trampoline.generate([ENTRY], NAME, text).text)
    if cuda:
        command = ["nvcc", "-Xcompiler", "-fPIC", "-c", "grader_trampoline.cu", "-o", "t.o"]
    else:
        flags = emulator.compile_flags("fast", compiler)  # type: ignore[arg-type]
        end = ["-O0", "-shared", "-Wl,-z,defs", "-o", "t.so"] if link else ["-fsyntax-only"]
        command = [compiler, *flags, "-x", "c++", "grader_trampoline.cu", *end]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report = compiler_messages.read(done.stdout + done.stderr, compiler, [ENTRY], text, NAME)
    shown = report.message + report.hint + report.log + "".join(message.text for message in report.messages)
    assert not re.search(r"grader_|GRADER_", shown), shown
    assert str(folder) not in shown
    return report


@dataclass(frozen=True)
class Broken:
    """A file, and what must be said about it."""

    text: str
    status: str
    message: str  # regular expressions
    hint: str


BROKEN = {
    "missing semicolon": Broken(
        f"{HEAD}  int x = 3\n  o[0] = x;\n}}\n",
        "compile_error",
        r"line [23]: expected",
        "`;` .* end of line 2",
    ),
    "undeclared name": Broken(f"{HEAD}  o[0] = foo;\n}}\n", "compile_error", "line 2: .*foo", "`foo`"),
    "misspelt name": Broken(
        f"{HEAD}  float total = 1;\n  total += 1; o[0] = totle;\n}}\n",
        "compile_error",
        "line 3: .*totle",
        "is it `total`",
    ),
    "missing header of the standard library": Broken(
        f"{HEAD}  std::vector<float> v;\n}}\n".replace("vector", "mt19937"),
        "compile_error",
        "line 2: .*mt19937",
        "#include <random>",
    ),
    "brace in the middle": Broken(
        f"void helper(int a)\n{{\n  if (a) {{\n    a = 3;\n}}\n{HEAD}}}\n",
        "compile_error",
        "`helper`, which starts at line 1, is never closed",
        "count the braces",
    ),
    "brace at the end": Broken(
        f"{HEAD}  if (n) {{\n}}\n",
        "compile_error",
        "`attention`, which starts at line 1, is never closed",
        "count",
    ),
    "unknown header": Broken(
        f"#include <torch/extension.h>\n{HEAD}}}\n", "compile_error", "line 1: .*torch", "remove the #include"
    ),
    "misspelt entry": Broken(
        HEAD.replace("attention", "atention") + "}\n",
        "missing_function",
        "no function `attention`",
        "`atention` at line 1; rename it",
    ),
    "no entry": Broken(
        "int x;\n", "missing_function", "no function `attention`", "write `void attention\\(const float"
    ),
    "entry left out by an #ifdef": Broken(
        f"#ifdef NEVER\n{HEAD}}}\n#endif\n", "missing_function", "`attention` \\(line 2\\) is left out", "#if"
    ),
    "too few parameters": Broken(
        "void attention(const float* q, float* o) {}\n",
        "wrong_signature",
        re.escape("(line 1) takes (const float* q, float* o); the assignment asks for (const float* Q, "),
        "yours has 2 parameters, the assignment passes 3",
    ),
    "another type": Broken(
        "void attention(const double* q, float* o, int n) {}\n",
        "wrong_signature",
        "takes \\(const double",
        "parameter 1 is `const double\\* q` in yours; the assignment passes `const float\\* Q`",
    ),
    "template that cannot be deduced": Broken(
        f"template <int D> {HEAD}}}\n", "wrong_signature", "takes", "its parameter `D` does not follow"
    ),
    "ambiguous overloads": Broken(
        f"{HEAD}}}\n{HEAD}}}\n".replace("int n", "long n", 1).replace("int n", "double n"),
        "wrong_signature",
        "several functions `attention` fit",
        "keep one of them",
    ),
    "kernel instead of a host function": Broken(
        f"__global__ {HEAD}}}\n", "wrong_signature", "is a __global__ kernel", "launch it from"
    ),
    "launch with too few arguments": Broken(
        f"__global__ void k(float* a, int n) {{}}\n{HEAD}  k<<<1, 2>>>(o);\n}}\n",
        "compile_error",
        re.escape("line 3: this launch passes 1 argument; `k` (line 1) takes (float* a, int n)"),
        "every parameter",
    ),
    "launch with a const array": Broken(
        f"__global__ void k(float* a, int n) {{}}\n{HEAD}  k<<<1, 2>>>(q, n);\n}}\n",
        "compile_error",
        "line 3: (an argument of this launch|.*const float)",
        "const float",
    ),
    "launch of nothing": Broken(f"{HEAD}  k<<<1, 2>>>(q);\n}}\n", "compile_error", "line 2: .*'k'", "`k`"),
    "shared array of variable size": Broken(
        f"__global__ void k(int n) {{\n  __shared__ float s[n];\n}}\n{HEAD}}}\n",
        "compile_error",
        "line 2: .*constant",
        "known when compiling",
    ),
    "error inside a template of the library": Broken(
        f"#include <vector>\n{HEAD}  std::vector<int&> v;\n}}\n", "compile_error", "line 3: ", ""
    ),
    "error inside a macro": Broken(
        f"#define CHECK(x) do {{ int e = x; }} while (0)\n{HEAD}  CHECK(zork);\n}}\n",
        "compile_error",
        "line 3: .*zork",
        "zork",
    ),
}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_explained(case: str, compiler: str, tmp_path: Path) -> None:
    """Status, message and hint say what, where and what to try; nothing of the grader's shows."""
    broken = BROKEN[case]
    report = read(compiler, broken.text, tmp_path)
    assert report.status == broken.status, report
    assert re.search(broken.message, report.message), report
    assert re.search(broken.hint, report.hint), report


@pytest.mark.parametrize("case", ["misspelt entry", "another type", "brace at the end", "missing semicolon"])
def test_nvcc_is_understood_too(case: str, tmp_path: Path) -> None:
    """EDG's wording leads to the same explanations."""
    broken = BROKEN[case]
    report = read("nvcc", broken.text, tmp_path)
    assert report.status == broken.status, report
    assert re.search(broken.message, report.message), report
    assert re.search(broken.hint, report.hint), report


def test_a_function_without_a_body_is_named(tmp_path: Path) -> None:
    """The linker's complaint names the declaration."""
    report = read("g++", HEAD.replace(" {\n", ";\n"), tmp_path, link=True)
    assert report.status == "missing_function"
    assert "`attention` is declared at line 1 but never defined" in report.message


def test_a_helper_without_a_body_is_a_compile_error(tmp_path: Path) -> None:
    """Only the entry itself counts as missing."""
    report = read("g++", f"void helper(int);\n{HEAD}  helper(n);\n}}\n", tmp_path, link=True)
    assert report.status == "compile_error"
    assert "`helper` is declared at line 1" in report.message


def test_too_much_static_shared_memory_is_a_limit() -> None:
    """ptxas's wording gives the kernel, the bytes and the way out."""
    log = (
        "ptxas error   : Entry function '_Z9flash_fwdPf' uses too much shared data"
        " (0x10000 bytes, 0xc000 max)\n"
    )
    text = f"__global__ void flash_fwd(float* a) {{}}\n{HEAD}}}\n"
    report = compiler_messages.read(log, "nvcc", [ENTRY], text, NAME)
    assert report.status == "limit"
    assert "`flash_fwd` (line 1) declares 65536 bytes" in report.message
    assert "49152" in report.message


def test_the_log_quotes_the_original_lines(tmp_path: Path) -> None:
    """The student sees `<<<` and __shared__, never what they became."""
    text = f"__global__ void k(int n) {{\n  __shared__ float s[n];\n}}\n{HEAD}  kk<<<1, 2>>>(n);\n}}\n"
    report = read("g++", text, tmp_path)
    assert "    2 |   __shared__ float s[n];" in report.log
    assert "    5 |   kk<<<1, 2>>>(n);" in report.log


def test_warnings_come_after_errors_and_main_gets_none(tmp_path: Path) -> None:
    """Errors first; that the renamed main() returns nothing is the grader's doing."""
    text = f"int g(int n) {{ int unused; }}\n{HEAD}  o[0] = foo;\n}}\nint main() {{\n}}\n"
    report = read("g++", text, tmp_path)
    severities = [message.severity for message in report.messages]
    assert severities == sorted(severities)
    assert severities.count("warning") == 2
    assert all(message.line < 5 for message in report.messages)


def test_an_answer_without_a_reason_is_the_graders_fault() -> None:
    """A compiler that dies is never blamed on the student."""
    report = compiler_messages.read("Killed\n", "g++", [ENTRY], f"{HEAD}}}\n", NAME)
    assert report.status == "grader_fault"
