"""Read what g++, clang++ and nvcc say, and tell it to a student in terms of the student's own file.

Compilers see a rewritten copy and a generated trampoline. Nothing of either reaches the student: lines are
quoted from the original text, errors in the trampoline are explained as what they mean (a function that is
missing, a signature that does not fit), and notes about the grader's headers are left out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from grader import cpp
from grader.records import BuildStatus, CompilerMessage, Entry, Parameter
from grader.trampoline import KERNEL_ENTRY, POINTEE

Severity = Literal["error", "warning", "note"]

MAX_MESSAGES = 40  # a missing brace can cause hundreds, and nobody reads the fortieth

_GNU = re.compile(
    r"^(?P<file>[^\s:(][^:(]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s+"
    r"(?P<severity>fatal error|internal compiler error|error|warning|note|sorry, unimplemented):\s+"
    r"(?P<text>.*)$"
)
_EDG = re.compile(
    r"^(?P<file>[^\s:(][^:(]*)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|internal error|error|warning|note|remark)(?: #[\w-]+)?: (?P<text>.*)$"
)
_UNPLACED = re.compile(
    r"^(?P<where>At end of source|ptxas|nvlink|nvcc|[\w+-]+)\s*: ?(?:fatal )?error\s*: (?P<text>.*)$"
)
_REQUIRED = re.compile(
    r"^(?P<file>[^\s:(][^:(]*):(?P<line>\d+):(?:\d+:)?\s+(?:recursively )?required (?:from|by)"
)
_INCLUDED = re.compile(r"^(?:In file included from| +from) (?P<file>[^\s:(][^:(]*):(?P<line>\d+)")
_EDG_CONTEXT = re.compile(
    r'^ +(?:detected during|instantiation of).*? at line (?P<line>\d+)(?: of "?(?P<file>[^"]+))?'
)
_LAUNCH = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^;]*?>)?\s*<<<[^;]*?>>>\s*(?=\()")
_UNDEFINED = re.compile(
    r"undefined (?:reference to|symbol:) *[`'\"]?(?P<symbol>(?:[^'\"`\n]|\([^)]*\))+)", re.MULTILINE
)
_TWICE = re.compile(r"multiple definition of [`'\"](?P<symbol>[^'\"`\n]+)")
_TOO_MUCH_SHARED = re.compile(
    r"Entry function '(?P<symbol>\w+)' uses too much shared data "
    r"\((?P<used>0x[0-9a-f]+) bytes, (?P<most>0x[0-9a-f]+)"
)


@dataclass(frozen=True)
class Report:
    """What a compiler's output means. `status` and `message` matter only where the compilation failed."""

    status: BuildStatus
    message: str
    hint: str
    messages: tuple[CompilerMessage, ...]
    log: str


@dataclass
class _Diagnostic:
    """One diagnostic as printed, with the places that its notes name."""

    severity: Severity
    file: str
    line: int
    column: int
    text: str
    notes: list[_Diagnostic] = field(default_factory=list)
    context: list[tuple[str, int]] = field(default_factory=list)  # "required from here", nearest last


def read(log: str, family: str, entries: Sequence[Entry], student_text: str, source_name: str) -> Report:
    """Explain the output of a compiler.

    `family` is "g++", "clang++" or "nvcc" (their formats are told apart line by line, since nvcc prints its
    host compiler's lines too). `student_text` is the original text, `source_name` the name that it was
    compiled under; every message speaks of that file and quotes it. After a compilation that succeeded only
    `messages` (its warnings) and `log` mean anything.
    """
    reader = _Reader(log, entries, student_text, source_name)
    messages = reader.messages()
    status, message, hint = explain(reader)
    return Report(status, message, hint, messages, reader.log(messages))


def parse(log: str, student_text: str, source_name: str) -> tuple[CompilerMessage, ...]:
    """Return the diagnostics about the student's file: errors in the order of the log, then warnings."""
    return _Reader(log, (), student_text, source_name).messages()


class _Reader:
    """A compiler's output beside the student's text."""

    def __init__(self, log: str, entries: Sequence[Entry], student_text: str, source_name: str) -> None:
        self.raw = log.translate(_PLAIN_QUOTES)
        self.entries = entries
        self.text = student_text
        self.source_name = source_name
        self.lines = student_text.splitlines()
        self.masked = cpp.mask(student_text)
        self.functions = cpp.functions(student_text)
        self.diagnostics = _diagnostics(self.raw)

    def student_line(self, found: _Diagnostic) -> int:
        """Return the student's line that a diagnostic is about; 0 when it is about none."""
        if self._is_student(found.file):
            return found.line
        if _is_trampoline(found.file) or not found.file:
            return 0
        for file, line in reversed(found.context):
            if self._is_student(file):
                return line
        return next((note.line for note in found.notes if self._is_student(note.file)), 0)

    def _is_student(self, file: str) -> bool:
        return PurePosixPath(file).name == self.source_name

    def messages(self) -> tuple[CompilerMessage, ...]:
        """Return the student's diagnostics, each once, errors before warnings."""
        made: dict[CompilerMessage, None] = {}
        for severity in ("error", "warning"):
            for found in self.diagnostics:
                line = self.student_line(found)
                if found.severity == severity and line and not self._is_about_main(found, line):
                    made[self._message(found, line)] = None
        return tuple(made)[:MAX_MESSAGES]

    def _message(self, found: _Diagnostic, line: int) -> CompilerMessage:
        # Where a line was rewritten, its columns are those of another text.
        rewritten = re.search(r"<<<|>>>|__shared__", self.line(line))
        column = 0 if rewritten or not self._is_student(found.file) else found.column
        return CompilerMessage(found.severity, line, column, self.plain(found, line))

    def _is_about_main(self, found: _Diagnostic, line: int) -> bool:
        """Say whether this is the warning that the renamed main(), no longer special, returns nothing."""
        if found.severity != "warning" or not re.search(r"no return|not return|missing return", found.text):
            return False
        main = next((f for f in self.functions if f.name == "main" and f.body), None)
        if main is None or main.body is None:
            return False
        lines = cpp.Lines(self.text)
        return lines.at(main.body[0]) <= line <= lines.at(main.body[1])

    def line(self, number: int) -> str:
        """Return a line of the student's text, without its line break."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def plain(self, found: _Diagnostic, line: int) -> str:
        """Return a diagnostic's text with nothing of the grader's in it."""
        text = re.sub(r" \[-fpermissive\]| \(near match\)", "", found.text)
        text = text.replace("grader_student_main", "main")
        reserved = re.search(r"grader_", text, re.IGNORECASE)
        if reserved or re.search(r"^no match|too (?:few|many) arguments|no viable", text):
            text = self._launch_trouble(line) or _without_reserved(text)
        return text

    def _launch_trouble(self, line: int) -> str:
        """Say what is wrong with the arguments of the launch at a line; empty if there is no launch."""
        start = sum(len(text) + 1 for text in self.masked.split("\n")[: line - 1])
        match = _LAUNCH.search(self.masked, start)
        if match is None or self.masked.count("\n", start, match.start()) > 0:
            return ""
        kernel = next((f for f in self.functions if f.name == match[1] and f.is_kernel), None)
        if kernel is None:
            return f"the launch of `{match[1]}` is not accepted"
        takes = f"`{kernel.name}` (line {kernel.line}) takes ({', '.join(kernel.parameters)})"
        given = _argument_count(self.masked, match.end())
        if given != len(kernel.parameters):
            return f"this launch passes {_count(given, 'argument')}; {takes}"
        return f"an argument of this launch has another type than its parameter: {takes}"

    def log(self, messages: Sequence[CompilerMessage]) -> str:
        """Write the diagnostics as a compiler does, about the student's file and with its own lines."""
        written: list[str] = []
        for message in messages:
            written.append(f"{self.source_name}:{message.line}: {message.severity}: {message.text}")
            if source := self.line(message.line).rstrip():
                written.append(f"{message.line:5} | {source.expandtabs(4)}")
        for line in self.raw.splitlines():
            if re.search(r"undefined reference|undefined symbol|multiple definition|ptxas error", line):
                said = re.sub(r"^.*?(?=undefined|multiple|ptxas)", "", line)
                if "grader_" not in said and said.strip() not in written:
                    written.append(said.strip())
        return "\n".join(written) + ("\n" if written else "")


_PLAIN_QUOTES = {ord("‘"): "'", ord("’"): "'", ord("“"): '"', ord("”"): '"'}


def _diagnostics(log: str) -> list[_Diagnostic]:
    """Split a log into errors and warnings, each with its notes and its context."""
    found: list[_Diagnostic] = []
    context: list[tuple[str, int]] = []
    for line in log.splitlines():
        if match := _REQUIRED.match(line) or _INCLUDED.match(line):
            if line.startswith("In file included"):
                context = []
            context = [*context, (match["file"], int(match["line"]))]
        elif match := _EDG_CONTEXT.match(line):
            if found:
                found[-1].context.append((match["file"] or found[-1].file, int(match["line"])))
        elif match := _GNU.match(line) or _EDG.match(line):
            column = match.groupdict().get("column") or 0
            made = _Diagnostic(
                _severity(match["severity"]),
                match["file"],
                int(match["line"]),
                int(column),
                match["text"].strip(),
            )
            if made.severity == "note":
                if found:
                    found[-1].notes.append(made)
            else:
                made.context = list(context)
                found.append(made)
        elif match := _UNPLACED.match(line):
            found.append(_Diagnostic("error", "", 0, 0, match["text"].strip()))
        elif re.search(r": In (?:instantiation|substitution|function|member function|lambda function)", line):
            context = []
    return found


def _severity(word: str) -> Severity:
    if word in ("note", "remark"):
        return "note"
    return "warning" if word == "warning" else "error"


def _is_trampoline(file: str) -> bool:
    return PurePosixPath(file).name.startswith("grader_trampoline")


def _without_reserved(text: str) -> str:
    text = re.sub(r"(?:::)?grader_rt::", "", text)
    if re.search(r"grader_", text, re.IGNORECASE):
        return "this line is not accepted by the compiler"
    return text


def _argument_count(masked: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(masked)):
        depth += (masked[at] in "([{") - (masked[at] in ")]}")
        if depth == 0:
            inside = masked[opening + 1 : at]
            return len(cpp.split_commas(inside)) if inside.strip() else 0
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


# --- what it means -------------------------------------------------------------------------------------

_Meaning = tuple[BuildStatus, str, str]

_BRACE_ERROR = re.compile(
    r"expected '}'|expected a \"}\"|function[- ]definition is not allowed"
    r"|linkage specification is not allowed|expected unqualified-id before string constant"
)


def explain(reader: _Reader) -> _Meaning:
    """Return status, message and hint of a failed compilation. The first explanation that applies wins."""
    errors = [found for found in reader.diagnostics if found.severity == "error"]
    for meaning in (
        _limit(reader),
        _unclosed(reader, errors),
        _student_error(reader, errors),
        _signature(reader, errors),
        _linker(reader),
    ):
        if meaning:
            return meaning
    said = _without_reserved(errors[0].text) if errors else "the compiler failed without naming an error"
    return (
        "grader_fault",
        f"the file could not be compiled: {said}",
        "this is not about a line of yours; show your instructor this message",
    )


def _limit(reader: _Reader) -> _Meaning | None:
    """Explain a CUDA limit that ptxas enforces."""
    match = _TOO_MUCH_SHARED.search(reader.raw)
    if match is None:
        return None
    kernel = next((f for f in reader.functions if f"{len(f.name)}{f.name}" in match["symbol"]), None)
    name = f"`{kernel.name}` (line {kernel.line})" if kernel else f"`{match['symbol']}`"
    used, most = int(match["used"], 16), int(match["most"], 16)
    return (
        "limit",
        f"{name} declares {used} bytes of static __shared__ memory; CUDA allows {most}",
        "use smaller tiles, or `extern __shared__` with cudaFuncSetAttribute for more than 48 KB",
    )


def _unclosed(reader: _Reader, errors: list[_Diagnostic]) -> _Meaning | None:
    """Explain a brace that is never closed, which compilers report far from where it is."""
    if not any(_BRACE_ERROR.search(error.text) for error in errors):
        return None
    first = next((line for line in map(reader.student_line, errors) if line), 0)
    opened = _unclosed_brace(reader.text)
    if opened is None or (first and first < opened):
        return None
    lines = cpp.Lines(reader.text)
    function = next((f for f in reader.functions if f.body and lines.at(f.body[0]) == opened), None)
    where = (
        f"`{function.name}`, which starts at line {function.line},"
        if function
        else f"the `{{` of line {opened}"
    )
    return (
        "compile_error",
        f"{where} is never closed: a `}}` is missing",
        "count the braces in it; an editor that indents the file shows where it goes wrong",
    )


def _unclosed_brace(text: str) -> int | None:
    """Return the line of the brace that is not closed.

    A function's definition starts in the first column; where one does so inside braces, what it stands in
    was not closed.
    """
    source = cpp.active(text)
    lines = cpp.Lines(source)
    stack: list[int] = []
    for match in re.finditer(r"[{}]|^(?:[A-Za-z_][\w<>:,*& ]*\([^;{}]*\)\s*(?=\{))", source, re.MULTILINE):
        if match.group() == "{":
            stack.append(lines.at(match.start()))
        elif match.group() == "}":
            if not stack:
                return None
            stack.pop()
        elif stack and not _is_namespace(source, stack[-1]):
            return stack[0] if len(stack) == 1 else _first_function(source, stack)
    return stack[0] if stack else None


def _is_namespace(source: str, line: int) -> bool:
    return bool(re.search(r"\bnamespace\b|extern\s*\"", source.split("\n")[line - 1]))


def _first_function(source: str, stack: list[int]) -> int:
    return next((line for line in stack if not _is_namespace(source, line)), stack[0])


def _student_error(reader: _Reader, errors: list[_Diagnostic]) -> _Meaning | None:
    """Explain the first error in the student's own lines."""
    for error in errors:
        line = reader.student_line(error)
        if line:
            text = reader.plain(error, line)
            return "compile_error", f"line {line}: {text}", _hint(reader, text, line)
    return None


_HINTS = (
    (r"(?:non-type template argument|template argument|array bound|expression).*not a constant"
     r"|not a constant expression|must have a constant value|variable length array",
     "the sizes of an array must be known when compiling: a #define, a constexpr or a template parameter"),
    (r"calling a __host__ function",
     "a kernel can only call __device__ functions: mark that function __device__"),
    (r"calling a __device__ function",
     "host code cannot call a __device__ function: launch a kernel instead"),
    (r"a __global__ function call must be configured", "a kernel is launched with <<<grid, block>>>"),
    (r"identifier \".*\" is undefined in device code", "mark what a kernel uses __device__ or __constant__"),
    (r"passes \d+ argument", "give every parameter of the kernel an argument, in its order"),
    (r"another type than its parameter|lose const|discards qualifiers|invalid conversion from 'const",
     "compare the types one by one; a const float* needs a parameter that is const float* too"),
    (r"cannot convert|incompatible type|invalid conversion|no known conversion|cannot be used to init",
     "the types on both sides differ: is an index or a * missing?"),
    (r"too (?:many|few) arguments", "compare the call with the parameters of the function"),
    (r"redefinition of|redeclar|conflicting declaration|already been de(?:clared|fined)|previously declared",
     "this name is taken by something above it: remove one of the two, or rename it"),
    (r"expected declaration|extraneous closing brace|expected a declaration",
     "there may be one `}` too many above this line"),
    (r"unterminated comment", "close the comment with */"),
    (r"missing terminating|unclosed string|unterminated string", "close the string on its line"),
    (r"unterminated (?:#|conditional)|#if.*without|missing #endif", "every #if needs its #endif"),
    (r"assignment of read-only|const-qualified|must be a modifiable lvalue|read-only",
     "this is const: write to the output, not to an input"),
    (r"subscript|subscripted value", "only arrays and pointers take [ ]: is this a single number?"),
)  # fmt: skip

_HOME = {
    "cmath": "sqrtf expf fmaxf fminf logf powf fabsf INFINITY NAN isnan isinf sqrt exp fabs",
    "cfloat": "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX",
    "climits": "INT_MAX INT_MIN UINT_MAX",
    "cstdio": "printf fprintf stderr stdout puts",
    "cstdlib": "malloc free exit rand srand atoi atof abort RAND_MAX EXIT_FAILURE EXIT_SUCCESS",
    "cstring": "memcpy memset strcmp strlen",
    "cstdint": "uint8_t uint32_t int32_t int64_t uint64_t uintptr_t",
    "vector": "vector",
    "iostream": "cout cerr endl",
    "string": "string to_string",
    "random": "mt19937 normal_distribution uniform_real_distribution",
    "algorithm": "sort fill generate max_element",
    "limits": "numeric_limits",
    "chrono": "chrono",
    "cuda_fp16.h": "half half2 __half __half2 __float2half __half2float",
    "cuda_bf16.h": "__nv_bfloat16 nv_bfloat16",
    "mma.h": "wmma nvcuda",
    "cooperative_groups.h": "cooperative_groups",
    "cassert": "assert",
}
_HEADER_OF = {name: header for header, names in _HOME.items() for name in names.split()}

_UNDECLARED = re.compile(
    r"'(?:std::)?(?P<gnu>[\w:]+)' (?:was not declared|has not been declared|does not name a type)"
    r"|undeclared identifier '(?P<clang>\w+)'|unknown type name '(?P<type>\w+)'"
    r"|identifier \"(?P<edg>\w+)\" is undefined(?! in)|'(?P<member>\w+)' is not a member of"
    r"|no (?:member|type|template) named '(?P<named>\w+)' in|has no member \"(?P<edg_member>\w+)\""
)
_NO_HEADER = re.compile(
    r"(?P<gnu>\S+): No such file|'(?P<clang>[^']+)' file not found"
    r"|cannot open source file \"(?P<edg>[^\"]+)\""
)


def _hint(reader: _Reader, text: str, line: int) -> str:
    """Return what to try about the commonest errors; empty for the others."""
    if match := _NO_HEADER.search(text):
        name = next(filter(None, match.groups()))
        return (
            f"remove the #include of {name}: only the C++ standard library and CUDA's own headers are there"
        )
    if re.search(
        r"expected (?:.*or )?(?:a )?['\"`];['\"`]|expected a \";\"|expected initializer before", text
    ):
        return f"a `;` is probably missing at the end of line {_missing_semicolon(reader, text, line)}"
    if match := _UNDECLARED.search(text):
        return _undeclared_hint(reader, next(filter(None, match.groups())), line)
    return next((hint for pattern, hint in _HINTS if re.search(pattern, text)), "")


def _missing_semicolon(reader: _Reader, text: str, line: int) -> int:
    """Return the line that lacks its semicolon: compilers name the next token's, clang the right one."""
    lines = reader.masked.splitlines()
    if re.search(r"';' (?:at end|after)", text):
        return line
    for number in range(line - 1, 0, -1):
        code = lines[number - 1].strip()
        if code:
            ends = code[-1] in ";{}:,(" or code.startswith("#")
            return line if ends else number
    return line


def _undeclared_hint(reader: _Reader, name: str, line: int) -> str:
    name = name.split("::")[-1]
    if header := _HEADER_OF.get(name):
        return f"`{name}` is declared in <{header}>: add #include <{header}> at the top of the file"
    words = re.findall(r"[A-Za-z_]\w*", reader.masked)
    later = next((f for f in reader.functions if f.name == name and f.line > line), None)
    if later:
        return (
            f"`{name}` is defined below, at line {later.line}: move it up, or declare it before its first use"
        )
    others = {word for word in words if word != name and len(word) > 1 and words.count(word) > 1}
    if near := difflib.get_close_matches(name, others, 1, 0.75):
        return f"is it `{near[0]}`, spelled differently?"
    return f"declare `{name}` before this line, or check its spelling"


def _signature(reader: _Reader, errors: list[_Diagnostic]) -> _Meaning | None:
    """Explain an error in the trampoline: the entry is missing, or takes something else."""
    for error in errors:
        if _is_trampoline(error.file):
            entry = _entry_of(reader.entries, error.text)
            if entry:
                return _entry_trouble(reader, entry, error)
    return None


def _entry_of(entries: Sequence[Entry], text: str) -> Entry | None:
    """Return the entry that an error names, the first one if it names none."""
    named = (entry for entry in entries if re.search(rf"\b{re.escape(entry.function)}\b", text))
    return next(named, entries[0] if entries else None)


def _entry_trouble(reader: _Reader, entry: Entry, error: _Diagnostic) -> _Meaning:
    found = cpp.find_function(reader.text, entry.function)
    if found is None:
        return _missing(reader, entry)
    mine = f"your `{found.name}` (line {found.line})"
    if KERNEL_ENTRY in error.text:
        return (
            "wrong_signature",
            f"{mine} is a __global__ kernel; the assignment asks for a host function that launches one",
            f"give the kernel another name and launch it from {_declaration(entry)}",
        )
    if re.search(r"not declared|undeclared|is undefined|has no member", error.text):
        return (
            "missing_function",
            f"{mine} is left out by the compiler: it stands inside an #if or #ifdef that is false",
            "move it out of the #if",
        )
    if "ambiguous" in error.text or "more than one instance" in error.text:
        return (
            "wrong_signature",
            f"several functions `{found.name}` fit the call with {_wanted(entry)}, none of them exactly",
            f"keep one of them: {_declaration(entry)}",
        )
    return (
        "wrong_signature",
        f"{mine} takes ({', '.join(found.parameters)}); the assignment asks for {_wanted(entry)}",
        _difference(found, entry, reader.raw),
    )


def _missing(reader: _Reader, entry: Entry) -> _Meaning:
    hosts = {
        f.name: f.line for f in reader.functions if not f.is_kernel and not f.is_device and f.name != "main"
    }
    near = difflib.get_close_matches(entry.function, hosts, 1, 0.6)
    hint = f"write {_declaration(entry)}"
    if near:
        hint = f"there is `{near[0]}` at line {hosts[near[0]]}; rename it to `{entry.function}`"
    return "missing_function", f"there is no function `{entry.function}`, which the assignment asks for", hint


def _difference(found: cpp.Function, entry: Entry, log: str) -> str:
    """Say in what the student's parameters differ from those asked for."""
    undeduced = re.search(
        r"(?:couldn't deduce template parameter|couldn't infer template argument) '(\w+)'", log
    )
    if undeduced or (found.is_template and "failed deduction" in log):
        name = f"`{undeduced[1]}`" if undeduced else f"in <{found.template_parameters}>"
        return (
            f"yours is a template, and its parameter {name} does not follow from the arguments: "
            f"write a plain {_declaration(entry)} that picks the instance"
        )
    mine, wanted = found.parameters, entry.parameters
    if len(mine) != len(wanted):
        return f"yours has {_count(len(mine), 'parameter')}, the assignment passes {len(wanted)}"
    for number, (text, parameter) in enumerate(zip(mine, wanted, strict=True), start=1):
        if not _may_take(text, parameter):
            return f"parameter {number} is `{text}` in yours; the assignment passes {_spell(parameter)}"
    return f"declare it as {_declaration(entry)}"


def _may_take(text: str, parameter: Parameter) -> bool:
    """Guess whether a parameter, as it is written, accepts what the assignment passes."""
    is_pointer = "*" in text or "[" in text
    if parameter.role == "stream":
        return "cudaStream_t" in text
    if parameter.role == "scalar":
        return not is_pointer and ("&" not in text or "const" in text)
    pointee = POINTEE[parameter.dtype].lstrip("_").removeprefix("nv_")
    return is_pointer and bool(re.search(rf"\b(?:__nv_|__|nv_)?{pointee}\b", text))


def _spell(parameter: Parameter) -> str:
    return f"`{_typed(parameter)}`"


def _typed(parameter: Parameter) -> str:
    if parameter.role == "stream":
        return f"cudaStream_t {parameter.name}"
    if parameter.role == "scalar":
        kind = "long long" if parameter.dtype == "int64" else parameter.dtype
        return f"{kind} {parameter.name}"
    const = "const " if parameter.role == "in" else ""
    return f"{const}{POINTEE[parameter.dtype]}* {parameter.name}"


def _wanted(entry: Entry) -> str:
    return f"({', '.join(map(_typed, entry.parameters))})"


def _declaration(entry: Entry) -> str:
    return f"`void {entry.function}{_wanted(entry)}`"


def _linker(reader: _Reader) -> _Meaning | None:
    """Explain what the linker did not find, or found twice."""
    if match := _UNDEFINED.search(reader.raw):
        symbol = match["symbol"].strip()
        name = re.split(r"[(<]", symbol)[0].split("::")[-1].strip()
        declared = next((f for f in reader.functions if f.name == name), None)
        entry = next((entry for entry in reader.entries if entry.function == name), None)
        if declared:
            return (
                "missing_function" if entry else "compile_error",
                f"`{name}` is declared at line {declared.line} but never defined as {symbol}",
                "write its body; the parameters of the declaration and of the definition must be the same",
            )
        if entry:
            return _missing(reader, entry)
        use = re.search(rf"\b{re.escape(name)}\b", reader.masked)
        where = f" (used at line {cpp.Lines(reader.text).at(use.start())})" if use else ""
        return (
            "compile_error",
            f"nothing defines `{name}`{where}",
            "define it in this file: the grader links nothing but CUDA's runtime and cuBLAS",
        )
    if match := _TWICE.search(reader.raw):
        return (
            "compile_error",
            f"`{match['symbol']}` is defined twice",
            "remove or rename one of the two",
        )
    return None
