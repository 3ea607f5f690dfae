"""Python and Cython source text: strings and comments are found by one regular expression.

The syntax up to Python 3.11 allows that: a string literal ends at the first unescaped quote of its
kind, in f-strings too. This is thirty times as fast as `tokenize`, and it reads Cython as well.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tools.guards.source import Block, Comment, Literals, joined, module_name

_TOKEN = re.compile(
    r"""
    \#[^\n]*+
    | \"\"\"(?:[^"\\]++|\\.|"(?!""))*+(?:\"\"\"|\\?\Z)
    | '''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\\?\Z)
    | "(?:[^"\\\n]++|\\.)*+"
    | '(?:[^'\\\n]++|\\.)*+'
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    """A comment or a string literal."""

    start: int  # of the opening quote, after a prefix such as ``f``
    end: int  # exclusive
    depth: int  # number of brackets that are open in front of it


@dataclass
class _Source:
    """The text of a file with its comments and strings."""

    text: str
    tokens: list[_Token] = field(default_factory=list)

    def __post_init__(self) -> None:
        depth = end = 0
        for match in _TOKEN.finditer(self.text):
            depth += _opened(self.text[end : match.start()])
            end = match.end()
            self.tokens.append(_Token(match.start(), end, depth))

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @cached_property
    def code(self) -> str:
        """The text with its comments and strings replaced by as many spaces."""
        parts = []
        end = 0
        for token in self.tokens:
            parts += [self.text[end : token.start], " " * (token.end - token.start)]
            end = token.end
        return "".join([*parts, self.text[end:]])

    def line(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return bisect.bisect_right(self.line_starts, offset)

    def before(self, offset: int) -> str:
        """Return the part of the line that ends at `offset`."""
        return self.text[self.line_starts[self.line(offset) - 1] : offset]

    def content(self, token: _Token) -> str:
        """Return a string literal without quotes, with its escape sequences as they are written."""
        literal = self.text[token.start : token.end]
        quotes = literal[:3] if literal.startswith(('"""', "'''")) else literal[:1]
        return literal[len(quotes) :].removesuffix(quotes)


@lru_cache(maxsize=2)
def _source(text: str) -> _Source:
    return _Source(text)


def code_of(text: str) -> str:
    """Return `text` with spaces for its comments and strings; offsets stay the same."""
    return _source(text).code


def _opened(code: str) -> int:
    opened = code.count("(") + code.count("[") + code.count("{")
    return opened - code.count(")") - code.count("]") - code.count("}")


# Comments and docstrings.


def blocks(path: str, text: str) -> list[Block]:
    """Return the comment and doc blocks of a file.

    A string literal that is a statement documents the module, class or function that it opens, or
    the name that the statement before it assigns.
    """
    source = _source(text)
    comments = (_comment(source, token) for token in source.tokens if text[token.start] == "#")
    return [*_docstrings(path, source), *joined(comments)]


def _comment(source: _Source, token: _Token) -> Comment:
    text = source.text[token.start : token.end].removeprefix("#").removeprefix(":")
    before = source.before(token.start)
    line = source.line(token.start)
    return Comment(line, len(before), "#", not before.strip(), [text.removeprefix(" ").rstrip()])


_LINE_END = re.compile(r"[ \t\r]*(?:#|\n|\Z)")


def _docstrings(path: str, source: _Source) -> Iterator[Block]:
    for token in source.tokens:
        if _is_statement(source, token):
            indent = len(source.before(token.start).rstrip("rRuU"))
            line, last_line = source.line(token.start), source.line(token.end - 1)
            subject = _subject(path, source, token, indent)
            yield Block(line, last_line, "doc", _dedented(source.content(token), indent), subject)


def _is_statement(source: _Source, token: _Token) -> bool:
    """Return whether a token is a string literal that is a statement, and so documents an item."""
    if source.text[token.start] == "#" or token.depth:
        return False
    indent = source.before(token.start).rstrip("rRuU")
    return (
        not indent.strip()
        and _LINE_END.match(source.text, token.end) is not None
        and not _continued(source, token)
    )


def _continued(source: _Source, token: _Token) -> bool:
    """Return whether the line in front of a literal ends with a backslash."""
    line_start = source.line_starts[source.line(token.start) - 1]
    return source.text[:line_start].endswith("\\\n") if line_start else False


_HEADER = re.compile(
    r"(?:(?:async\s+)?(?:def|class)\s+|(?:cdef|cpdef)\s[^(=:]*?)(\w+)\s*(?:\[[^\]]*\]\s*)?[(:]"
)
_ASSIGNED = re.compile(r"([\w.]+)\s*(?::|=)")


def _subject(path: str, source: _Source, token: _Token, indent: int) -> str:
    """Return the name of the item that a docstring documents, or "" if it follows no item."""
    before = source.line(token.start) - 1
    lines = [source.code[start:end] for start, end in _lines_up(source, before)]
    filled = [line for line in lines if line.strip()]
    if not filled:
        return module_name(path)
    header = filled[0].rstrip().endswith(":") and _indent(filled[0]) < max(indent, 1)
    for line in filled:
        match = _match_subject(line, indent, header=header)
        if match is not None:
            return match[1]
        if _indent(line) < indent and not header:
            break
    return ""


def _match_subject(line: str, indent: int, *, header: bool) -> re.Match[str] | None:
    if header:
        return _HEADER.match(line.strip()) if _indent(line) < indent else None
    return _ASSIGNED.match(line.strip()) if _indent(line) == indent else None


def _lines_up(source: _Source, last: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the 60 lines up to `last`, the longest signature that is searched."""
    starts = source.line_starts
    for number in range(last, max(last - 60, 0), -1):
        yield starts[number - 1], starts[number]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedented(text: str, indent: int) -> str:
    """Return a docstring without the indentation of its statement, with all its lines."""
    first, *others = text.expandtabs().split("\n")
    indent = min([indent, *(_indent(line) for line in others if line.strip())])
    return "\n".join([first.strip(), *(line[indent:].rstrip() for line in others)]).rstrip()


# Texts and tests.

_MESSAGE = re.compile(
    r"\b(?:raise\s+[\w.]+|_?log(?:ger|ging)?\.(?:log|debug|info|warning|error|exception|critical)"
    r"|warnings\.warn)\(|(?:Error|Exception)\("
)
_TEST = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(test_\w+)", re.MULTILINE)


def literals(text: str) -> Literals:
    """Return the texts of a file without its docstrings, and the names of its tests."""
    source = _source(text)
    strings = [token for token in source.tokens if not _is_statement(source, token)]
    tests = [(source.line(match.start(1)), match[1]) for match in _TEST.finditer(source.code)]
    return Literals(list(_joined_literals(source, strings)), list(_messages(source)), tests)


def _messages(source: _Source) -> Iterator[tuple[int, str]]:
    starts = [token.start for token in source.tokens]
    done = 0
    for match in _MESSAGE.finditer(source.code):
        end = _closing(source.code, match.end())
        inside = source.tokens[
            bisect.bisect_left(starts, max(match.end(), done)) : bisect.bisect_left(starts, end)
        ]
        done = max(done, end)
        yield from _joined_literals(source, inside)


_BRACKET = re.compile(r"[()\[\]{}]")


def _closing(code: str, offset: int) -> int:
    """Return the offset of the bracket that closes the one before `offset`, or the end."""
    depth = 1
    for match in _BRACKET.finditer(code, offset):
        depth += 1 if match[0] in "([{" else -1
        if not depth:
            return match.start()
    return len(code)


def _joined_literals(source: _Source, tokens: list[_Token]) -> Iterator[tuple[int, str]]:
    """Yield string literals; adjacent ones are one text."""
    text, line, end = "", 0, -1
    for token in tokens:
        if source.text[token.start] == "#":
            continue
        between = source.text[end : token.start] if end >= 0 else "none"
        if re.fullmatch(r"\s*[rRfFbBuU]{0,2}", between):
            text += source.content(token)
        else:
            if text:
                yield line, text
            text, line = source.content(token), source.line(token.start)
        end = token.end
    if text:
        yield line, text
