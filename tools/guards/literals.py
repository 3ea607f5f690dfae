"""Find expressions of a Python file that are numbers written in its source.

Literals, and constants made of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from tools.guards.tree import Tree

Place: TypeAlias = tuple[str, int]
"""Path and line."""

Constants: TypeAlias = Mapping[str, tuple[ast.expr, int]]
"""Name → value and line of the assignment."""


@dataclass(frozen=True)
class Number:
    """A number other than 0 that is written in the source."""

    text: str  # the expression, as written
    place: Place  # of the definition, if the number is a constant
    is_constant: bool = False


class Module:
    """A parsed file, its constants and its imports."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.tree = ast.parse(source, path)

    @cached_property
    def constants(self) -> Constants:
        """Assignments at the top of the module."""
        return _constants([self.tree])

    @cached_property
    def attributes(self) -> Constants:
        """Assignments at the top of its classes."""
        return _constants([node for node in self.tree.body if isinstance(node, ast.ClassDef)])

    @cached_property
    def imports(self) -> Mapping[str, tuple[str, str]]:
        """Name → path of the module that defines it, and its name there.

        Of ``from a.b import c`` only.
        """
        return {
            alias.asname or alias.name: (node.module.replace(".", "/") + ".py", alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """Name → path, of ``from a import b`` where b may be a module."""
        return {
            name: f"{package.removesuffix('.py')}/{original}.py"
            for name, (package, original) in self.imports.items()
        }


def _constants(scopes: Sequence[ast.Module | ast.ClassDef]) -> Constants:
    return {
        name: (value, statement.lineno)
        for scope in scopes
        for statement in scope.body
        for name, value in assigned(statement)
    }


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value, and the values; ``a, b = 1, 2`` gives two."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _pairs(statement.target, statement.value)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _pairs(target, statement.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, other)


class Literals:
    """The constants of the Python files in some folders.

    Constants of `exempt` files are not numbers: they are the ones to use.
    """

    def __init__(self, tree: Tree, under: tuple[str, ...], exempt: str) -> None:
        paths = (path for path in tree.sources(".py", under=under) if path != exempt)
        self.modules = {path: Module(path, tree.text(path)) for path in paths}

    def number(self, expression: ast.expr, module: Module) -> Number | None:
        """Return the number that an expression of a module is; None for others and for 0."""
        if isinstance(expression, ast.Name):
            return self._constant(module, expression.id)
        if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
            return self._of_module(module, expression.value.id, expression.attr)
        if isinstance(expression, ast.IfExp):
            return self.number(expression.body, module) or self.number(expression.orelse, module)
        return self._literal(expression, module)

    def _literal(self, expression: ast.expr, module: Module) -> Number | None:
        if isinstance(expression, ast.BinOp):
            return self._arithmetic(expression, module)
        if is_literal(expression):
            return Number(ast.unparse(expression), (module.path, expression.lineno))
        return None

    def _arithmetic(self, expression: ast.BinOp, module: Module) -> Number | None:
        """A sum is a number if one part is one, another operation if both are.

        ``2 * PATIENCE_S`` is not a number.
        """
        parts = (expression.left, expression.right)
        found = [self.number(part, module) for part in parts]
        enough = any if isinstance(expression.op, ast.Add) else all
        if not any(found) or not enough(map(_is_number, parts, found)):
            return None
        constant = next((number for number in found if number and number.is_constant), None)
        return constant or Number(ast.unparse(expression), (module.path, expression.lineno))

    def _constant(self, module: Module, name: str) -> Number | None:
        if name in module.constants:
            return self._assigned(module, name, module.constants)
        path, original = module.imports.get(name, ("", ""))
        return self._constant(self.modules[path], original) if path in self.modules else None

    def _of_module(self, module: Module, name: str, attribute: str) -> Number | None:
        if name in ("self", "cls"):
            return self._assigned(module, attribute, module.attributes)
        path = module.modules.get(name)
        return self._constant(self.modules[path], attribute) if path in self.modules else None

    def _assigned(self, module: Module, name: str, constants: Constants) -> Number | None:
        value, line = constants.get(name, (None, 0))
        if value is None or not self.number(value, module):
            return None
        return Number(f"{name} = {ast.unparse(value)}", (module.path, line), is_constant=True)


def _is_number(expression: ast.expr, found: Number | None) -> bool:
    return found is not None or is_literal(expression, zero=True)


def is_literal(expression: ast.expr, zero: bool = False) -> bool:
    """Return whether an expression is a number as written; `zero` also accepts 0."""
    return (
        isinstance(expression, ast.Constant)
        and isinstance(expression.value, int | float)
        and not isinstance(expression.value, bool)
        and (zero or expression.value != 0)
    )
