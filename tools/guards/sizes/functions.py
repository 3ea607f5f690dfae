"""The functions of a source file and their lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from tools.guards.source import python, rust


@dataclass(frozen=True, slots=True)
class Function:
    """A function with a body; a nested one counts on its own as well."""

    name: str
    line: int  # of `fn` or `def`, from 1
    last_line: int  # inclusive

    @property
    def lines(self) -> int:
        """The number of lines, with those of its signature and documentation inside it."""
        return self.last_line - self.line + 1


def long_functions(path: str, text: str, lines_max: int) -> list[Function]:
    """Return the functions with more than `lines_max` lines; empty for other languages.

    Raises:
        SyntaxError: The file may have a long function and is not valid Python.
    """
    found: Iterator[Function] = iter(())
    if path.endswith(".rs"):
        found = chain(_rust_functions(text), _functions_in_macros(text))
    elif path.endswith((".pyx", ".pxd")):
        found = _cython_functions(python.code_of(text))
    elif path.endswith((".py", ".pyi")) and _may_exceed(text, lines_max):
        found = _python_functions(path, text)
    return [function for function in found if function.lines > lines_max]


def _rust_functions(text: str) -> Iterator[Function]:
    captures = rust.captures(rust.root(text), "(function_item name: (identifier) @name)")
    for name in captures.get("name", ()):
        if function := name.parent:
            first, last = function.start_point.row + 1, function.end_point.row + 1
            yield Function(rust.node_text(name), first, last)


_MACROS = "[(macro_invocation (token_tree) @tokens) (macro_rule right: (token_tree) @tokens)]"
_FN = re.compile(r"\bfn\s+([\w$]+)(?:[^{};\[]|\[[^\]]*\])*\{")


def _functions_in_macros(text: str) -> Iterator[Function]:
    """Yield the functions among the tokens of macros, such as those of ``proptest!``."""
    code, reach = rust.code_of(text).encode(), 0
    for tokens in rust.captures(rust.root(text), _MACROS).get("tokens", ()):
        if tokens.start_byte >= reach and b"fn" in (tokens.text or b""):
            reach = tokens.end_byte
            inside = code[tokens.start_byte : reach].decode()
            for match in _FN.finditer(inside):
                first = tokens.start_point.row + inside.count("\n", 0, match.start()) + 1
                body = inside[match.start() : _end_of_block(inside, match.end())]
                yield Function(match[1], first, first + body.count("\n"))


def _end_of_block(code: str, start: int) -> int:
    """Return the offset of the brace that closes the block whose content starts at `start`."""
    depth = 1
    for brace in re.finditer(r"[{}]", code[start:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return start + brace.start()
    return len(code)


_CYTHON = re.compile(
    r"^([ \t]*)(?:async\s+def|def|cpdef|cdef)\s[^\n(=:]*?(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)[^\n:(]*:",
    re.MULTILINE,
)


def _cython_functions(code: str) -> Iterator[Function]:
    """Yield the functions of Cython; a body is all lines that are indented more than its head."""
    lines = code.split("\n")
    for head in _CYTHON.finditer(code):
        first = last = code.count("\n", 0, head.start()) + 1
        start = code.count("\n", 0, head.end()) + 1
        for number, line in enumerate(lines[start:], start + 1):
            if line.strip():
                if len(line) - len(line.lstrip()) <= len(head[1]):
                    break
                last = number
        yield Function(head[2], first, max(last, start))


_HEAD = re.compile(r"^([ \t]*)(?:async\s+def|def|class)\b", re.MULTILINE)


def _may_exceed(text: str, lines_max: int) -> bool:
    """Return whether the lines between definitions allow a function of more than `lines_max` lines.

    A function ends before the next definition that is not indented more than its own. Only one file
    in seven passes this test and is parsed.
    """
    open_heads: list[
        tuple[int, int]
    ] = []  # indentation and line, of each definition around this one
    line, counted = 1, 0
    for head in _HEAD.finditer(python.code_of(text)):
        line += text.count("\n", counted, head.start())
        counted = head.start()
        while open_heads and open_heads[-1][0] >= len(head[1]):
            if line - open_heads.pop()[1] > lines_max:
                return True
        open_heads.append((len(head[1]), line))
    last = text.count("\n") + 1
    return any(last - start >= lines_max for _, start in open_heads)


def _python_functions(path: str, text: str) -> Iterator[Function]:
    for statement in _statements(ast.parse(text, path).body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            last = statement.end_lineno or statement.lineno
            yield Function(statement.name, statement.lineno, last)


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield all statements of a body and those inside them, without their expressions.

    Exception handlers and cases of a match are included.
    """
    for statement in body:
        yield statement
        for name in _BLOCKS:
            inner = getattr(statement, name, None)
            if isinstance(inner, list):  # the body of a lambda is an expression
                yield from _statements(inner)
