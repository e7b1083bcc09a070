"""Find one's way in C++ source text without a compiler: comments, strings, functions and their signatures.

Students' files are full of macros, half-finished and sometimes not even well-formed, so nothing here parses
C++; it reads as much structure as the grader needs to rewrite a launch or to quote a declaration. Every
transformation keeps the length and the lines of the text, so that offsets hold in all of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator
from dataclasses import dataclass

# Numbers and identifiers are matched so that the apostrophes of 1'000 and the R of R"(..)" are told apart.
_LEXEME = re.compile(
    r"""
      (?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    | (?P<word>[A-Za-z_$]\w*)
    | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    | (?P<string>"(?:\\\r?\n|\\.|[^"\\\n])*"?)
    | (?P<char>'(?:\\.|[^'\\\n])+')
    | (?P<line_comment>//(?:\\\r?\n|[^\n])*)
    | (?P<block_comment>/\*.*?(?:\*/|\Z))
    """,
    re.VERBOSE | re.DOTALL,
)
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_CONTINUATION = re.compile(r"\\(?=\r?\n)")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<name>\w*)(?P<rest>(?:\\\r?\n|[^\n])*)", re.MULTILINE)
_TOKEN = re.compile(r'[A-Za-z_$]\w*|\.?\d[\w.]*|::|->|\.\.\.|"[^"\n]*"?|\S')

_OPEN = {"(": ")", "[": "]", "{": "}"}
_NOT_A_NAME = frozenset(
    {
        "__launch_bounds__",
        "__attribute__",
        "__declspec",
        "__align__",
        "alignas",
        "decltype",
        "noexcept",
        "throw",
        "requires",
        "explicit",
        "if",
        "for",
        "while",
        "switch",
        "return",
        "sizeof",
        "catch",
        "static_assert",
        "operator",
        "__maxnreg__",
        "__cluster_dims__",
        "__block_size__",
    }
)
_NOT_A_TYPE = frozenset(
    {
        "__global__",
        "__device__",
        "__host__",
        "static",
        "inline",
        "extern",
        "constexpr",
        "consteval",
        "virtual",
        "friend",
        "explicit",
        "__forceinline__",
        "__noinline__",
        "__inline__",
        "__inline",
        "__forceinline",
        "template",
        "typename",
    }
)


def mask(text: str) -> str:
    """Blank comments and literals.

    Returns a text of the same length with the same line breaks. The quotes of a literal stay, its inside
    becomes spaces. A literal that is not closed ends with its line, as compilers see it.
    """
    return _LEXEME.sub(_blank_lexeme, text)


def _blank_lexeme(match: re.Match[str]) -> str:
    found = match.group()
    kind = match.lastgroup
    if kind in ("word", "number"):
        return found
    if kind in ("line_comment", "block_comment"):
        return _blank(found)
    quote = "'" if kind == "char" else '"'
    first = found.index(quote)
    closed = len(found) > first + 1 and found.endswith(quote)
    if not closed:
        return _blank(found[:first]) + quote + _blank(found[first + 1 :])
    return _blank(found[:first]) + quote + _blank(found[first + 1 : -1]) + quote


def _blank(text: str) -> str:
    """Turn everything but line breaks, and the backslashes that continue a line, into spaces."""
    blank = _NOT_NEWLINE.sub(" ", text)
    for match in _CONTINUATION.finditer(text):
        blank = blank[: match.start()] + "\\" + blank[match.end() :]
    return blank


def active(text: str, *, directives: bool = False) -> str:
    """Mask the text and blank what the preprocessor certainly removes: `#if 0` blocks.

    Where the branches of another conditional do not each balance their braces, only the first one is kept,
    as one of them alone is what a compiler sees. Directives (`#define` with its body, too) are blanked
    unless `directives` is true.
    """
    masked = mask(text)
    removed = _removed_spans(masked)
    if not directives:
        removed += [match.span() for match in _DIRECTIVE.finditer(masked)]
    out = list(masked)
    for start, end in removed:
        for offset in range(start, end):
            if out[offset] not in "\r\n":
                out[offset] = " "
    return "".join(out)


@dataclass
class _Conditional:
    """An open `#if`: where each branch starts and ends, and whether it is known to be dead."""

    branches: list[tuple[int, int, bool]]
    start: int
    dead: bool


def _removed_spans(masked: str) -> list[tuple[int, int]]:
    """Return the branches of conditionals that are dead, or that would unbalance the braces."""
    spans: list[tuple[int, int]] = []
    stack: list[_Conditional] = []
    for match in _DIRECTIVE.finditer(masked):
        name, rest = match["name"], match["rest"].strip()
        if name in ("if", "ifdef", "ifndef"):
            stack.append(_Conditional([], match.end(), name == "if" and rest in ("0", "false", "(0)")))
        elif name in ("else", "elif", "endif") and stack:
            top = stack[-1]
            top.branches.append((top.start, match.start(), top.dead))
            top.dead = name == "else" and len(top.branches) == 1 and _is_true(masked, top)
            top.start = match.end()
            if name == "endif":
                spans += _dropped(masked, stack.pop().branches)
    return spans


def _is_true(masked: str, conditional: _Conditional) -> bool:
    """Say whether the conditional is a literal `#if 1`, so that its `#else` is dead."""
    line = masked[masked.rfind("\n", 0, conditional.branches[0][0]) + 1 : conditional.branches[0][0]]
    return re.sub(r"\s", "", line) in ("#if1", "#iftrue", "#if(1)")


def _dropped(masked: str, branches: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    dead = [(start, end) for start, end, is_dead in branches if is_dead]
    live = [(start, end) for start, end, is_dead in branches if not is_dead]
    balance = [masked.count("{", *span) - masked.count("}", *span) for span in live]
    return dead + (live[1:] if any(balance) else [])


class Lines:
    """Turns offsets into 1-based line numbers."""

    def __init__(self, text: str) -> None:
        self._starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def at(self, offset: int) -> int:
        """Return the line of an offset."""
        return bisect_right(self._starts, offset)


@dataclass(frozen=True)
class Function:
    """A function as it is written: a definition or a declaration.

    `line` is that of the name; `body` the offsets of its braces, None for a declaration. `parameters` are
    texts with their comments removed and white space folded; `(void)` and `()` both give none.
    """

    name: str
    qualified: str
    return_type: str
    parameters: tuple[str, ...]
    line: int
    is_template: bool = False
    template_parameters: str = ""
    is_kernel: bool = False
    is_device: bool = False  # __device__, and not __host__ as well
    is_definition: bool = False
    body: tuple[int, int] | None = None

    @property
    def signature(self) -> str:
        """The declaration in one line, without attributes."""
        template = f"template <{self.template_parameters}> " if self.is_template else ""
        return f"{template}{self.return_type} {self.qualified}({', '.join(self.parameters)})"


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int


def functions(text: str) -> list[Function]:
    """Return the functions at namespace level, and static member functions, in the order of the text."""
    source = active(text)
    tokens = [_Token(m.group(), m.start(), m.end()) for m in _TOKEN.finditer(source)]
    return list(_Reader(source, tokens).scope(0, len(tokens), (), in_class=False))


def find_function(text: str, name: str) -> Function | None:
    """Return the function of that name: host code before kernels, definitions before declarations."""
    found = [function for function in functions(text) if function.name == name]
    found.sort(key=lambda function: (function.is_kernel or function.is_device, not function.is_definition))
    return found[0] if found else None


class _Reader:
    """Walks over the declarations of a file."""

    def __init__(self, source: str, tokens: list[_Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.lines = Lines(source)
        self.partner = _partners(tokens)

    def scope(self, at: int, end: int, path: tuple[str, ...], *, in_class: bool) -> Iterator[Function]:
        """Yield the functions between two tokens; `path` names the enclosing namespaces and classes."""
        start = at
        while at < end:
            word = self.tokens[at].text
            if word in ("(", "["):
                at = self.partner.get(at, at) + 1
            elif word == ";":
                yield from self._declared(start, at, None, path, in_class)
                at = start = at + 1
            elif word == "}" or (word == ":" and in_class and self._is_access(at)):
                at = start = at + 1
            elif word == "{":
                close = min(self.partner.get(at, end), end)
                done = yield from self._braces(start, at, close, path, in_class)
                at = close + 1
                start = at if done else start
            else:
                at += 1

    def _is_access(self, at: int) -> bool:
        return self.tokens[at - 1].text in ("public", "private", "protected")

    def _braces(
        self, start: int, brace: int, close: int, path: tuple[str, ...], in_class: bool
    ) -> Generator[Function, None, bool]:
        """Yield what a braced block defines; returns whether the declaration ends with it."""
        head = self._after_template(start, brace)
        words = [token.text for token in self.tokens[head:brace]]
        if "namespace" in words[:2]:
            names = tuple(word for word in words if word[0].isalpha() and word not in ("namespace", "inline"))
            yield from self.scope(brace + 1, close, path + names, in_class=False)
            return True
        if words[:1] == ["extern"] and len(words) == 2 and words[1].startswith('"'):
            yield from self.scope(brace + 1, close, path, in_class=False)
            return True
        kind = next((word for word in words if word in ("class", "struct", "union", "enum")), None)
        if kind and self._group(head, brace) is None:
            if kind != "enum" and (name := _class_name(words)):
                yield from self.scope(brace + 1, close, (*path, name), in_class=True)
            return False
        body = (
            self.tokens[brace].start,
            self.tokens[close].end if close < len(self.tokens) else len(self.source),
        )
        found = list(self._declared(start, brace, body, path, in_class))
        yield from found
        return bool(found) or words[-1:] == [")"] or self._group(head, brace) is not None

    def _declared(
        self, start: int, stop: int, body: tuple[int, int] | None, path: tuple[str, ...], in_class: bool
    ) -> Iterator[Function]:
        """Yield the function that the tokens declare, if they do declare one."""
        head = self._after_template(start, stop)
        group = self._group(head, stop)
        if group is None:
            return
        first = group - 1
        while (
            first - 2 >= head
            and self.tokens[first - 1].text == "::"
            and self.tokens[first - 2].text[0].isalpha()
        ):
            first -= 2
        before = self._specifiers(head, first)
        types = [word for word in before if word not in _NOT_A_TYPE and not word.startswith('"')]
        parameters = self._parameters(group)
        if not types or types[0] in ("return", "using", "typedef", "else", "goto", "friend"):
            return
        if body is None and any(not re.match(r"[A-Za-z_:.]", parameter) for parameter in parameters):
            return  # a variable with an initialiser: dim3 block(16, 16);
        if in_class and "static" not in before:
            return
        names = "".join(token.text for token in self.tokens[first:group])
        yield Function(
            name=self.tokens[group - 1].text,
            qualified="::".join((*path, names)),
            return_type=_join(types),
            parameters=parameters,
            line=self.lines.at(self.tokens[group - 1].start),
            is_template=head > start,
            template_parameters=self._between(start + 1, head - 1) if head > start else "",
            is_kernel="__global__" in before,
            is_device="__device__" in before and "__host__" not in before,
            is_definition=body is not None,
            body=body,
        )

    def _after_template(self, start: int, stop: int) -> int:
        """Return where the declaration proper starts, past `template <...>`."""
        at = start
        while at + 1 < stop and self.tokens[at].text == "template" and self.tokens[at + 1].text == "<":
            depth = 0
            at += 1
            while at < stop:
                word = self.tokens[at].text
                depth += (word == "<") - (word == ">")
                at = self.partner.get(at, at) if word in _OPEN else at
                at += 1
                if depth == 0:
                    break
        return at

    def _group(self, start: int, stop: int) -> int | None:
        """Return the token of the `(` that opens a parameter list: the last one after a possible name."""
        found = None
        at = start
        while at < stop:
            word = self.tokens[at].text
            if word in ("=", "->", ":"):
                break
            if word == "(":
                previous = self.tokens[at - 1].text if at > start else ""
                if (previous[:1].isalpha() or previous[:1] == "_") and previous not in _NOT_A_NAME:
                    found = at
            if word in _OPEN:
                at = self.partner.get(at, stop)
            at += 1
        return found

    def _specifiers(self, start: int, stop: int) -> list[str]:
        """Return the words before a name, without the attributes and macros that take arguments."""
        words: list[str] = []
        at = start
        while at < stop:
            word = self.tokens[at].text
            if word == "(":
                if words and words[-1] != "decltype":
                    words.pop()
                at = self.partner.get(at, stop)
            elif word == "[":
                at = self.partner.get(at, stop)
            else:
                words.append(word)
            at += 1
        return words

    def _parameters(self, group: int) -> tuple[str, ...]:
        close = self.partner.get(group)
        if close is None:
            return ()
        inside = self.source[self.tokens[group].end : self.tokens[close].start]
        parts = tuple(" ".join(part.split()) for part in split_commas(inside))
        return () if parts in (("",), ("void",)) else parts

    def _between(self, first: int, last: int) -> str:
        """Return the text strictly between two tokens, white space folded."""
        return " ".join(self.source[self.tokens[first].end : self.tokens[last].start].split())


def _partners(tokens: list[_Token]) -> dict[int, int]:
    """Map each opening bracket to its closing one. A stray closing bracket closes nothing."""
    found: dict[int, int] = {}
    stack: list[int] = []
    for at, token in enumerate(tokens):
        if token.text in _OPEN:
            stack.append(at)
        elif token.text in (")", "]", "}"):
            while stack and _OPEN[tokens[stack[-1]].text] != token.text:
                if token.text != "}":
                    break  # a stray ) inside { }: leave the braces alone
                stack.pop()
            if stack and _OPEN[tokens[stack[-1]].text] == token.text:
                found[stack.pop()] = at
    return found


def _class_name(words: list[str]) -> str:
    for at, word in enumerate(words):
        if word in ("class", "struct", "union"):
            names = [name for name in words[at + 1 :] if name[0].isalpha() or name[0] == "_"]
            names = [name for name in names if name not in _NOT_A_NAME]
            return names[0] if names else ""
    return ""


def _join(words: list[str]) -> str:
    """Write the tokens of a type as people do: `const float*`, `std::vector<int>`."""
    text = ""
    for word in words:
        wordy = word[0].isalnum() or word[0] == "_"
        text += " " if text and wordy and (text[-1].isalnum() or text[-1] in "_*&>") else ""
        text += word
    return text


def split_commas(masked: str) -> list[str]:
    """Split at the commas outside brackets and template arguments; the parts join to the text with commas."""
    parts: list[str] = []
    start = depth = angles = 0
    for at, character in enumerate(masked):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and character == "<" and _opens_template(masked, at):
            angles += 1
        elif depth == 0 and character == ">" and angles and masked[at - 1] != "-":
            angles -= 1
        elif character == "," and depth == 0 and angles == 0:
            parts.append(masked[start:at])
            start = at + 1
    parts.append(masked[start:])
    return parts


def _opens_template(masked: str, at: int) -> bool:
    """Guess whether a `<` opens template arguments: a name before it, and a `>` after it."""
    if masked[at + 1 : at + 2] in ("<", "=") or masked[at - 1 : at] == "<":
        return False
    before = masked[:at].rstrip()
    return bool(before) and (before[-1].isalpha() or before[-1] in "_0123456789") and ">" in masked[at:]
