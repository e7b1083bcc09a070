"""Generate the file that is compiled: it includes the student's file and calls its entries.

The C++ compiler decides whether a signature fits, so everything that C++ accepts is accepted: `float*` or
`const float*`, `int` or `size_t`, templates, overloads, namespaces. Each call stands on a line of its own, so
that an error there is known to be about a signature (see `compiler_messages`).

A student's file may `#define` nearly any word. All words of ours are therefore spelled `grader_...`, and
types get such names before the file is included; after it come only those, `extern "C"` and the entry's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader import cpp
from grader.records import Entry, Parameter

POINTEE = {
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int32": "int",
    "uint8": "unsigned char",
}
SCALAR = {
    "int": "int",
    "int64": "long long",
    "size_t": "decltype(sizeof 0)",
    "float": "float",
    "double": "double",
    "bool": "bool",
}
_HEADERS = {"float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h"}
KERNEL_ENTRY = "grader_entry_is_a_kernel"  # in an #error, recognised by compiler_messages

_BEFORE = """\
// Made by the grader: calls the functions of {include} that it grades.
#include <exception>
{headers}
#define GRADER_EXPORT extern "C" __attribute__((visibility("default")))
typedef void* grader_pointer;
typedef int grader_status;
GRADER_EXPORT char grader_exception[256];
char grader_exception[256];
{aliases}
static void grader_keep(const char* text) {{
  int at = 0;
  for (; text[at] != 0 && at < 255; ++at) grader_exception[at] = text[at];
  grader_exception[at] = 0;
}}
// Returns 0, or 1 when an exception came out of the entry.
template <class Grader_call> static int grader_guard(grader_pointer* arguments, Grader_call call) {{
  try {{
    call(arguments);
    return 0;
  }} catch (const std::exception& caught) {{
    grader_keep(caught.what());
  }} catch (...) {{
    grader_keep("something that is not a std::exception");
  }}
  return 1;
}}
{declarations}
#define main grader_student_main
#include "{include}"
#undef main
"""
_CALL = """\
extern "C" grader_status grader_call_{index}(grader_pointer* grader_a) {{
return grader_guard(grader_a, [](grader_pointer* grader_a) {{ (grader_discard) grader_a;
{call}
}});
}}
"""


@dataclass(frozen=True)
class Trampoline:
    """The generated text; `lines` maps its 1-based lines that call an entry to that entry's function."""

    text: str
    lines: dict[int, str]


def generate(entries: Sequence[Entry], include: str, student_text: str) -> Trampoline:
    """Write the trampoline for the entries of an assignment.

    `include` is the file name that the student's file has beside the trampoline. The library exports
    `int grader_call_<i>(void** arguments)` for the i-th entry, where an argument is the device pointer itself
    (null allowed), a pointer to the value of a scalar, or a `cudaStream_t`; it returns 1 after an exception,
    whose text `char grader_exception[256]` then holds.
    """
    types = sorted({p.dtype for entry in entries for p in entry.parameters if p.role != "stream"})
    streams = any(p.role == "stream" for entry in entries for p in entry.parameters)
    aliases = [*map(_alias, types), *([_STREAM] if streams else []), "typedef void grader_discard;"]
    text = _BEFORE.format(
        include=include,
        headers="\n".join(f"#include <{_HEADERS[dtype]}>" for dtype in types if dtype in _HEADERS),
        aliases="\n".join(aliases),
        declarations="\n".join(
            f"GRADER_EXPORT int grader_call_{index}(grader_pointer*);" for index in range(len(entries))
        ),
    )
    lines: dict[int, str] = {}
    for index, entry in enumerate(entries):
        block = _CALL.format(index=index, call=_call(entry, student_text))
        lines[text.count("\n") + 3] = entry.function
        text += block
    return Trampoline(text, lines)


_STREAM = "static inline cudaStream_t grader_stream(grader_pointer value) { return (cudaStream_t)value; }"


def _alias(dtype: str) -> str:
    """Declare the function that turns an untyped argument into a typed one."""
    if dtype in POINTEE:
        kind = POINTEE[dtype]
        return (
            f"static inline {kind}* grader_{dtype}_array(grader_pointer value) {{ return ({kind}*)value; }}"
        )
    kind = SCALAR[dtype]
    return f"static inline {kind} grader_{dtype}_value(grader_pointer value) {{ return *({kind}*)value; }}"


def _call(entry: Entry, student_text: str) -> str:
    """Write the call of an entry; a kernel of that name gets an error instead, as CUDA cannot call it."""
    function = cpp.find_function(student_text, entry.function)
    if function and function.is_kernel:
        return f"#error {KERNEL_ENTRY} {entry.function}"
    name = function.qualified if function else entry.function
    arguments = ", ".join(_argument(p, index) for index, p in enumerate(entry.parameters))
    return f"{name}({arguments});"


def _argument(parameter: Parameter, index: int) -> str:
    if parameter.role == "stream":
        return f"grader_stream(grader_a[{index}])"
    kind = "value" if parameter.role == "scalar" else "array"
    return f"grader_{parameter.dtype}_{kind}(grader_a[{index}])"
