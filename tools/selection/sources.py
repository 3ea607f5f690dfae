"""The Python files of a tree, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from tools.guards.tree import Tree

PACKAGES = ("pykafka_core", "spark_udfs", "tests", "bench", "tools")

PRODUCT = ("pykafka_core", "spark_udfs")

_STRING_MAX = 200
"""Characters of a string that may be a path or the name of a module."""


_NAMING = (ast.ImportFrom, ast.Assign, ast.AnnAssign)


class Used(NamedTuple):
    """The import statements of a file, its short strings, and the statements that name values."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    strings: frozenset[str]
    names: tuple[ast.stmt, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """A Python file."""

    path: PurePosixPath
    module: str
    text: str

    def code(self) -> ast.Module:
        """Return its syntax; empty if it cannot be parsed, which lints report.

        The caller drops it: the trees of all files together would slow down the garbage collector.
        """
        try:
            return ast.parse(self.text)
        except SyntaxError:
            return ast.Module(body=[], type_ignores=[])

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        is_package = self.path.stem == "__init__"
        return self.module if is_package else self.module.rpartition(".")[0]

    @cached_property
    def used(self) -> Used:
        """The names in it."""
        strings: set[str] = set()
        imports: list[ast.Import | ast.ImportFrom] = []
        code = self.code()
        for node in ast.walk(code):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.append(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
        short = frozenset(one for one in strings if len(one) <= _STRING_MAX)
        names = tuple(one for one in code.body if isinstance(one, _NAMING))
        return Used(tuple(imports), short, names)

    def origin(self, node: ast.ImportFrom) -> str:
        """Return the module that an import statement takes names from."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])


def module_name(path: str) -> str | None:
    """Return the dotted name of a Python file of `PACKAGES`, or None."""
    place = PurePosixPath(path)
    if place.parts[0] not in PACKAGES or place.suffix not in (".py", ".pyi"):
        return None
    parts = place.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(tree: Tree) -> Iterator[Source]:
    """Yield the Python files of `PACKAGES`."""
    for path in tree.paths:
        if path.endswith(".py") and (module := module_name(path)):
            yield Source(PurePosixPath(path), module, tree.text(path))
