"""Find expressions of a Python file that are numbers written in its source.

Literals, and constants, local variables and defaults of parameters that are made of them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
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
    place: Place  # of the definition, if the number has a name
    is_named: bool = False


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


def assigned(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value, and the values; ``a, b = 1, 2`` gives two.

    A loop over a tuple or list gives its name each of the values.
    """
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _pairs(statement.target, statement.value)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _pairs(target, statement.value)
    elif isinstance(statement, ast.For) and isinstance(statement.iter, ast.Tuple | ast.List):
        for value in statement.iter.elts:
            yield from _pairs(statement.target, value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, other)


Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Scope:
    """The top of a module, or a function with those around it."""

    def __init__(
        self, module: Module, function: Function | None = None, outer: Scope | None = None
    ) -> None:
        self.module = module
        self._function = function
        self._outer = outer
        self._hidden: frozenset[str] = frozenset()

    def nodes(self) -> Iterator[tuple[ast.AST, Scope]]:
        """Yield every node below the module with its scope, in no order."""
        left: list[tuple[ast.AST, Scope]] = [(self.module.tree, self)]
        while left:
            node, scope = left.pop()
            yield node, scope
            inner = Scope(self.module, node, scope) if isinstance(node, Function) else scope
            left += [(child, inner) for child in ast.iter_child_nodes(node)]

    def values_of(self, name: str) -> Sequence[ast.expr] | None:
        """Return the values that functions give a local name; None if it is not local."""
        if name in self._hidden:
            return ()
        if name in self._locals:
            return self._locals[name]
        return self._outer.values_of(name) if self._outer else None

    def without(self, name: str) -> Scope:
        """Return a copy in which a name has no value, as in the value of the name itself."""
        copy = Scope(self.module, self._function, self._outer)
        copy._hidden = self._hidden | {name}
        return copy

    @cached_property
    def _locals(self) -> Mapping[str, Sequence[ast.expr]]:
        found: defaultdict[str, list[ast.expr]] = defaultdict(list)
        if self._function is not None:
            for parameter, default in defaults(self._function.args):
                found[parameter] += [] if default is None else [default]
            for statement in _statements(self._function):
                for name, value in assigned(statement):
                    found[name].append(value)
        return found


def defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    """The names of parameters, and their defaults."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    named = zip(
        [*positional, *arguments.kwonlyargs],
        [*missing, *arguments.defaults, *arguments.kw_defaults],
        strict=True,
    )
    return ((name.arg, default) for name, default in named)


def _statements(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes in it."""
    left = list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        if not isinstance(node, Function | ast.ClassDef):
            yield node
            left += ast.iter_child_nodes(node)


class Literals:
    """The constants of the Python files in some folders.

    Constants of `exempt` files are not numbers: they are the ones to use.
    """

    def __init__(self, tree: Tree, under: tuple[str, ...], exempt: str) -> None:
        paths = (path for path in tree.sources(".py", under=under) if path != exempt)
        self.modules = {path: Module(path, tree.text(path)) for path in paths}

    def number(self, expression: ast.expr, scope: Scope) -> Number | None:
        """Return the number that an expression of a scope is; None for others and for 0."""
        if isinstance(expression, ast.Name):
            return self._named(expression.id, scope)
        if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
            return self._of_module(scope.module, expression.value.id, expression.attr)
        if isinstance(expression, ast.IfExp):
            return self.number(expression.body, scope) or self.number(expression.orelse, scope)
        if isinstance(expression, ast.BinOp):
            return self._arithmetic(expression, scope)
        if is_literal(expression):
            return Number(ast.unparse(expression), (scope.module.path, expression.lineno))
        return None

    def _arithmetic(self, expression: ast.BinOp, scope: Scope) -> Number | None:
        """A sum is a number if one part is one, another operation if both are.

        ``2 * PATIENCE_S`` is not a number.
        """
        parts = (expression.left, expression.right)
        found = [self.number(part, scope) for part in parts]
        enough = any if isinstance(expression.op, ast.Add) else all
        if not any(found) or not enough(map(_is_number, parts, found)):
            return None
        named = next((number for number in found if number and number.is_named), None)
        place = (scope.module.path, expression.lineno)
        return named or Number(ast.unparse(expression), place)

    def _named(self, name: str, scope: Scope) -> Number | None:
        values = scope.values_of(name)
        if values is None:
            return self._constant(scope.module, name)
        for value in values:
            if self.number(value, scope.without(name)):
                place = (scope.module.path, value.lineno)
                return Number(f"{name} = {ast.unparse(value)}", place, is_named=True)
        return None

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
        if value is None or not self.number(value, Scope(module)):
            return None
        return Number(f"{name} = {ast.unparse(value)}", (module.path, line), is_named=True)


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
