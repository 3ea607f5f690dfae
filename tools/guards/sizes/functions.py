"""The functions of a source file and their lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        found = _rust_functions(text)
    elif path.endswith((".py", ".pyi")) and _may_exceed(text, lines_max):
        found = _python_functions(path, text)
    return [function for function in found if function.lines > lines_max]


def _rust_functions(text: str) -> Iterator[Function]:
    captures = rust.captures(rust.root(text), "(function_item name: (identifier) @name)")
    for name in captures.get("name", ()):
        if function := name.parent:
            first, last = function.start_point.row + 1, function.end_point.row + 1
            yield Function(rust.node_text(name), first, last)


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
