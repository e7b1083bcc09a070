"""Turn CUDA's two syntax extensions into C++, in place: `<<<...>>>` launches and `__shared__` variables.

Everything else of CUDA is a name, and names are the headers' business (`include/`). The output has the lines
of the input, with each token on its own line, so that compilers and debuggers speak of the student's lines.
What only a GPU can run is found here too (`Unsupported`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader import cpp

# What a launch and a declaration become; the headers in include/ define these names.
LAUNCH = '::grader_rt::launch("{name}", {line}, '
LAUNCH_WITH = '::grader_rt::launch_with("{name}", {line}, [=](auto... grader_a) {{ '
CONFIG = ", ::grader_rt::config("
CONFIG_WITH = "(grader_a...); }, ::grader_rt::config("

_SPACE = re.compile(r"(?:\s|\\\r?\n)*")
_BREAK = re.compile(r"\\?\r?\n")
_WORD_BEFORE = re.compile(r"[A-Za-z_$][\w$]*\Z")
_PLAIN_NAME = re.compile(r"(?:::\s*)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\Z")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\r?\n|[^\n])*", re.MULTILINE)
_MACRO_HEAD = re.compile(r"[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)]*\))?")
_KEYWORDS = frozenset({"return", "if", "while", "for", "switch", "else", "do", "case", "co_return", "throw"})
_ALIGNMENT = re.compile(r"\b(?:__align__|alignas|__attribute__|__declspec)\s*(?=\()")
_DECLARATOR = re.compile(
    r"(?P<type>.*?)(?P<name>[A-Za-z_]\w*)\s*(?P<extents>(?:\[[^\[\]]*\]\s*)*)\Z", re.DOTALL
)

_FEATURES = (
    (r"\b(?:__cluster_dims__|cluster_group|this_cluster|__cluster_\w+)\b", "a thread block cluster"),
    (r"\b(?:cuTensorMap\w*|CUtensorMap\w*|cudaTensorMap\w*)\b", "TMA (a tensor map)"),
    (r"\bcuda\s*::\s*ptx\b", "cuda::ptx (inline PTX)"),
    (r"^[ \t]*#[ \t]*include[ \t]*<(?:cute|cutlass)/", "CUTLASS"),
    (r"\b(?:cute|cutlass)\s*::", "CUTLASS"),
    (r"\bcudaLaunchKernelEx\w*", "cudaLaunchKernelEx"),
    (r"\bcudaLaunchCooperativeKernel\w*", "a cooperative launch"),
    (r"\bthis_grid\s*\(", "a grid-wide barrier (cooperative launch)"),
    (r"\b(?:tex[123]D\w*|cudaTextureObject_t|cudaSurfaceObject_t|surf[123]D\w+)\b", "a texture"),
    (r"\bwgmma\w*", "wgmma"),
)
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:volatile\b|__volatile__\b)?\s*(?=\()")
_PTX = (("wgmma", "wgmma"), ("cp.async.bulk", "TMA"), ("mma.sync", "a tensor-core instruction"))


@dataclass(frozen=True)
class Unsupported:
    """Something that needs a real GPU. `what` completes "... needs a real GPU"."""

    line: int
    what: str


@dataclass(frozen=True)
class SharedVariable:
    """A `__shared__` variable. `type` is spelled with its extents; `dynamic` for `extern __shared__`."""

    name: str
    line: int
    type: str
    dynamic: bool = False


@dataclass(frozen=True)
class Rewritten:
    """The text for a C++ compiler.

    `fallback` is true where a `__shared__` declaration could not be read and was left to the headers, which
    make it a variable of the OS thread: right, but without red zones and outside CUDA's limits.
    """

    text: str
    unsupported: tuple[Unsupported, ...] = ()
    shared: tuple[SharedVariable, ...] = ()
    fallback: bool = False


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def rewrite(text: str) -> Rewritten:
    """Rewrite launches and shared variables; the result has exactly the lines of `text`."""
    return _Rewriter(text).run()


class _Rewriter:
    """The state of one rewrite: the text, its masked twin, and what was found in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.masked = cpp.active(text, directives=True)
        self.lines = cpp.Lines(text)
        self.macros = [match.span() for match in _DEFINE.finditer(self.masked)]
        self.functions = cpp.functions(text)
        self.edits: list[_Edit] = []
        self.unsupported: list[Unsupported] = []
        self.shared: list[SharedVariable] = []
        self.fallback = False

    def run(self) -> Rewritten:
        """Make every edit and apply them all."""
        for match in re.finditer("<<<", self.masked):
            self._launch(match.start())
        for match in re.finditer(r"\b__shared__\b", self.masked):
            self._shared(match.start(), match.end())
        self._find_unsupported()
        return Rewritten(
            self._apply(),
            tuple(sorted(set(self.unsupported), key=lambda found: (found.line, found.what))),
            tuple(self.shared),
            self.fallback,
        )

    def _apply(self) -> str:
        pieces: list[str] = []
        at = 0
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end)):
            if edit.start < at:
                continue  # inside another edit: a __shared__ variable in a declaration already rewritten
            pieces += [self.text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*pieces, self.text[at:]])

    def _line(self, offset: int) -> str:
        """Return the line as the rewritten code should name it: a macro's is where it is expanded."""
        return "__LINE__" if self._macro(offset) else str(self.lines.at(offset))

    def _macro(self, offset: int) -> tuple[int, int] | None:
        return next((span for span in self.macros if span[0] <= offset < span[1]), None)

    # --- launches ---

    def _launch(self, opening: int) -> None:
        """Rewrite the launch whose `<<<` stands at `opening`, if it is one."""
        name_end = opening - _space_before(self.masked, opening)
        name_start = _expression_start(self.masked, name_end)
        macro = self._macro(opening)
        closing = _find_closing(self.masked, opening + 3, macro[1] if macro else None)
        if name_start == name_end or closing is None:
            return
        colon = " " if self.masked[name_start - 1 : name_start] == ":" else ""
        name = _in_string(_fold(self.masked[name_start:name_end]))
        direct = self._is_plain(self.masked[name_start:name_end])
        before = (LAUNCH if direct else LAUNCH_WITH).format(name=name, line=self._line(name_start))
        self.edits += [
            _Edit(name_start, name_start, colon + before),
            _Edit(opening, opening + 3, CONFIG if direct else CONFIG_WITH),
            _Edit(closing, closing + 3, "))"),
        ]
        if not direct:
            self._spell_nullptr(closing + 3)
        if any(
            f.body and f.body[0] <= opening < f.body[1] for f in self.functions if f.is_kernel or f.is_device
        ):
            number = self.lines.at(name_start)
            self.unsupported.append(Unsupported(number, "a launch inside a kernel (dynamic parallelism)"))

    def _is_plain(self, kernel: str) -> bool:
        """Say whether the kernel's name alone gives a function pointer: one function, and no template."""
        if not _PLAIN_NAME.match(kernel):
            return False
        name = re.split(r"\W+", kernel)[-1]
        signatures = {(f.is_template, f.parameters) for f in self.functions if f.name == name and f.is_kernel}
        types = {tuple(_without_name(p) for p in parameters) for _, parameters in signatures}
        return bool(signatures) and len(types) == 1 and not any(template for template, _ in signatures)

    def _spell_nullptr(self, at: int) -> None:
        """Write NULL as nullptr among the arguments: a lambda's parameter would make it an integer."""
        opening = at + _space_after(self.masked, at)
        closing = _balanced(self.masked, opening)
        if closing is None:
            return
        for part in re.finditer(r"\bNULL\b", self.masked[opening:closing]):
            alone = self.masked[opening : opening + part.start()].rstrip()[-1:] in ("(", ",")
            if alone and self.masked[opening + part.end() : closing + 1].lstrip()[:1] in (")", ","):
                self.edits.append(_Edit(opening + part.start(), opening + part.end(), "nullptr"))

    # --- shared variables ---

    def _shared(self, start: int, end: int) -> None:
        """Rewrite the declaration that holds a `__shared__`, or fall back to a static variable."""
        macro = self._macro(start)
        first = self._statement_start(start, macro)
        last = _statement_end(self.masked, end, macro[1] if macro else len(self.masked))
        words = self.masked[first:start]
        edit = None
        if last is not None and not re.search(r"^[ \t]*#", self.masked[end:last], re.MULTILINE):
            edit = self._declaration(first, start, end, last, in_macro=macro is not None)
        if edit:
            self.edits.append(edit)
        else:
            # The headers define __shared__ as `static`, which a declaration can hold only once.
            if re.search(r"\bstatic\b", words):
                self.edits.append(_Edit(start, end, ""))
            self.fallback = True

    def _statement_start(self, offset: int, macro: tuple[int, int] | None) -> int:
        """Return where the statement around `offset` starts, white space skipped."""
        start = 0
        if macro:
            start = _MACRO_HEAD.match(self.masked, macro[0]).end()  # type: ignore[union-attr]
        start = max(start, *(self.masked.rfind(mark, start, offset) + 1 for mark in ";{}"))
        if not macro:
            before = self.masked[start:offset]
            directives = re.finditer(r"^[ \t]*#(?:\\\r?\n|[^\n])*", before, re.MULTILINE)
            start += max((directive.end() for directive in directives), default=0)
        label = re.search(r"(?<!:):(?!:)", self.masked[start:offset])
        start += label.end() if label else 0
        return start + _space_after(self.masked, start)

    def _declaration(self, first: int, start: int, end: int, last: int, *, in_macro: bool) -> _Edit | None:
        """Return the edit for `first..last` (the `;` excluded), None where the declaration is too odd."""
        # The keyword itself is blanked, so that `float __shared__ x[4]` reads as `float x[4]`.
        blanked = self.masked[first:start] + " " * (end - start) + self.masked[end:last]
        blanked = _blank_groups(blanked.replace("\\\n", " \n").replace("\\\r\n", " \r\n"))
        is_extern = bool(re.match(r"(?:\w+\s+)*?extern\b", blanked))
        blanked = re.sub(r"\b(?:extern|static|inline)\b", lambda m: " " * len(m.group()), blanked)
        if re.search(r"[={}()]", re.sub(r"\[[^\[\]]*\]|<[^<>]*>", "", blanked)):
            return None
        parts = _declarators(blanked)
        if parts is None:
            return None
        return self._spelled(first, last, parts, is_extern=is_extern, in_macro=in_macro)

    def _spelled(
        self, first: int, last: int, parts: list[_Declarator], *, is_extern: bool, in_macro: bool
    ) -> _Edit | None:
        """Write the declarators as macro calls, each on the line of its name."""
        file_scope = not in_macro and self._at_file_scope(first)
        if is_extern and not all(re.match(r"\[\s*\]", part.extents) for part in parts):
            return None
        if not is_extern and any(re.search(r"\[\s*\]", part.extents) for part in parts):
            return None
        pieces: list[str] = []
        at = first
        for part in parts:
            name_at = first + part.offset
            pieces.append("".join(_BREAK.findall(self.text[at:name_at])))
            at = name_at
            extents = [_fold(inner) for inner in re.findall(r"\[([^\[\]]*)\]", part.extents)]
            kind = _array(part.type, extents[1:] if is_extern else extents)
            line = self._line(name_at)
            if is_extern:
                macro = "GRADER_SHARED_DYNAMIC_FILE" if file_scope else "GRADER_SHARED_DYNAMIC"
                pieces.append(f"{macro}({line}, {part.name}, {kind})")
            else:
                macro = "GRADER_SHARED_STATIC" if file_scope else "GRADER_SHARED_VARIABLE"
                unique = "(1000000 + __COUNTER__)" if in_macro else str(len(self.shared))
                pieces.append(f"{macro}({unique}, {line}, {part.name}, {kind})")
            pieces.append("; ")
            written = part.type + "".join(f"[{extent}]" for extent in extents)
            self.shared.append(SharedVariable(part.name, self.lines.at(name_at), written, is_extern))
        pieces[-1] = ""
        pieces.append("".join(_BREAK.findall(self.text[at:last])))
        return _Edit(first, last, "".join(pieces))

    def _at_file_scope(self, offset: int) -> bool:
        """Say whether only namespaces enclose the offset."""
        source = cpp.active(self.text)[:offset]
        heads: list[str] = []
        for match in re.finditer(r"[{}]", source):
            if match.group() == "{":
                head_start = max(source.rfind(mark, 0, match.start()) for mark in ";{}") + 1
                heads.append(source[head_start : match.start()])
            elif heads:
                heads.pop()
        return all(re.search(r'\bnamespace\b|\bextern\s*"', head) and "(" not in head for head in heads)

    # --- what needs a GPU ---

    def _find_unsupported(self) -> None:
        for pattern, what in _FEATURES:
            for match in re.finditer(pattern, self.masked, re.MULTILINE):
                self.unsupported.append(Unsupported(self.lines.at(match.start()), what))
        for match in _ASM.finditer(self.masked):
            end = _balanced(self.masked, match.end()) or match.end()
            written = self.text[match.start() : end]
            kind = next((f"inline PTX ({what})" for word, what in _PTX if word in written), "inline PTX")
            self.unsupported.append(Unsupported(self.lines.at(match.start()), kind))


@dataclass(frozen=True)
class _Declarator:
    """One variable of a declaration. `offset` is that of its name in the declaration."""

    type: str
    name: str
    extents: str
    offset: int


def _declarators(declaration: str) -> list[_Declarator] | None:
    """Split `float a[4], *b` into variables with their types; None where one of them cannot be read."""
    found: list[_Declarator] = []
    base = ""
    at = 0
    for part in _split_declarators(declaration):
        match = _DECLARATOR.match(part.rstrip())
        if match is None or (found and match["type"].strip(" \t\r\n*&")):
            return None
        own = _fold(match["type"])
        if not found:
            base = own.rstrip("*& ")
            kind = own
        else:
            kind = base + own
        if not re.search(r"[A-Za-z_]", base) or re.search(r"&", kind):
            return None
        found.append(_Declarator(kind, match["name"], match["extents"], at + match.start("name")))
        at += len(part) + 1
    return found


def _split_declarators(declaration: str) -> Iterator[str]:
    """Split at the commas that separate variables: not those inside < >, which a type may hold."""
    start = depth = angles = 0
    for at, character in enumerate(declaration):
        depth += (character in "[(") - (character in "])")
        if depth == 0:
            angles += (character == "<") - (character == ">")
            if character == "," and angles <= 0:
                yield declaration[start:at]
                start = at + 1
    yield declaration[start:]


def _array(kind: str, extents: list[str]) -> str:
    return f"::grader_rt::array_t<{', '.join([kind, *(f'({extent})' for extent in extents)])}>"


def _without_name(parameter: str) -> str:
    """Drop the name of a parameter, so that a declaration and its definition compare equal."""
    text = re.sub(r"\s*=.*", "", parameter)
    text = re.sub(r"\b(?:__restrict__|__restrict|const)\b", " ", text)
    words = re.findall(r"\w+|\S", text)
    if len(words) > 1 and re.match(r"[A-Za-z_]", words[-1]) and words[-1] not in _TYPE_WORDS:
        words.pop()
    return " ".join(words)


_TYPE_WORDS = frozenset(
    {"int", "float", "double", "char", "long", "short", "unsigned", "bool", "half", "size_t"}
)


def _blank_groups(declaration: str) -> str:
    """Blank alignment specifiers with their arguments; the arena aligns every variable more than enough."""
    while match := _ALIGNMENT.search(declaration):
        end = (_balanced(declaration, match.end()) or match.end()) + 1
        gap = re.sub(r"[^\n]", " ", declaration[match.start() : end])
        declaration = declaration[: match.start()] + gap + declaration[end:]
    return declaration


def _fold(text: str) -> str:
    """Put a text on one line, its continuations and white space folded."""
    return " ".join(re.sub(r"\\\r?\n", " ", text).split())


def _in_string(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _space_after(text: str, start: int) -> int:
    """Return the length of the white space, continued lines included, from `start` on."""
    match = _SPACE.match(text, start)
    return len(match.group()) if match else 0


def _space_before(text: str, end: int) -> int:
    """Return the length of the white space, continued lines included, that ends at `end`."""
    at = end
    while at > 0 and (text[at - 1].isspace() or (text[at - 1] == "\\" and text[at : at + 1] in ("\r", "\n"))):
        at -= 1
    return end - at


def _balanced(text: str, opening: int) -> int | None:
    """Return the offset of the bracket that closes the one at `opening`."""
    depth = 0
    for match in re.compile(r"[()\[\]{}]").finditer(text, opening):
        depth += 1 if match.group() in "([{" else -1
        if depth == 0:
            return match.start()
        if depth < 0:
            return None
    return None


def _find_closing(text: str, start: int, macro_end: int | None) -> int | None:
    """Return the offset of the `>>>` that ends a configuration and is followed by arguments.

    A macro may end there, and leave the arguments to the place of use.
    """
    at = start
    while (match := re.compile(r"[(\[{]|[)\]};]|>>>").search(text, at)) is not None:
        if match.group() == ">>>":
            after = match.end() + _space_after(text, match.end())
            return match.start() if text[after : after + 1] == "(" or _ends_macro(after, macro_end) else None
        if match.group() not in ("(", "[", "{"):
            return None
        closing = _balanced(text, match.start())
        if closing is None:
            return None
        at = closing + 1
    return None


def _ends_macro(offset: int, macro_end: int | None) -> bool:
    return macro_end is not None and offset >= macro_end


def _statement_end(text: str, start: int, limit: int) -> int | None:
    """Return the offset of the `;` that ends a declaration, before `limit`.

    The last declaration of a macro may leave its `;` to the place of use: then that is the macro's end.
    """
    match = re.compile(r"[;{}]").search(text, start, limit)
    if match is None:
        return limit if limit < len(text) else None
    return match.start() if match.group() == ";" else None


def _open_before(text: str, closing: int) -> int | None:
    """Return the offset of the bracket that the one at `closing` closes."""
    depth = 0
    for at in range(closing, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth == 0:
            return at
    return None


def _angle_before(text: str, closing: int) -> int | None:
    """Return the offset of the `<` that the `>` at `closing` closes, parentheses skipped."""
    depth = 0
    at = closing
    while at >= 0:
        character = text[at]
        if character in ")]}":
            opening = _open_before(text, at)
            if opening is None:
                return None
            at = opening
        elif character == ">" and text[at - 1 : at] != "-":
            depth += 1
        elif character == "<":
            depth -= 1
            if depth == 0:
                return at
        elif character in ";({[":
            return None
        at -= 1
    return None


def _expression_start(text: str, end: int) -> int:
    """Return where the postfix expression that ends at `end` starts: a name, `ns::k<T>`, `(*p)`, `o.k[i]`."""
    start = _component_start(text, end)
    while start < end:
        before = start - _space_before(text, start)
        join = next((mark for mark in ("::", "->", "##", ".") if text.endswith(mark, 0, before)), None)
        if join is None:
            return start
        before -= len(join)
        left_end = before - _space_before(text, before)
        left = _component_start(text, left_end)
        if left == left_end:
            return before  # a name from the global namespace: ::k
        start = left
    return start


def _component_start(text: str, end: int) -> int:
    """Return where one component of a postfix expression starts, or `end` if there is none."""
    at = end
    while True:
        last = text[at - 1 : at]
        if last == ">" and at == end:
            opening = _angle_before(text, at - 1)
        elif last in (")", "]") and last:
            opening = _open_before(text, at - 1)
        else:
            break
        if opening is None:
            return end
        before = opening - _space_before(text, opening)
        word = _WORD_BEFORE.search(text, 0, before)
        if text[opening] == "(" and (word is None or word.group() in _KEYWORDS):
            return opening
        at = before
    word = _WORD_BEFORE.search(text, max(0, at - 256), at)
    if word is None or word.group() in _KEYWORDS:
        return end
    start = word.start()
    before = start - _space_before(text, start)
    if text.endswith("template", 0, before):
        start = before - len("template")
    return start
