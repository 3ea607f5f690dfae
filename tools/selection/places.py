"""The files and folders that expressions name, such as ``Path(__file__).parent / "golden"``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from posixpath import normpath

from tools.selection.sources import Source

_MAY_BE_PLACES = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.BinOp)


class Places:
    """Values of expressions, as paths relative to the root of the tree."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = {source.module: source for source in sources}
        self._names = cache(_names)
        self._open: set[tuple[Source, str]] = set()  # names that are being looked up

    def of(self, source: Source) -> Iterator[str]:
        """Yield the paths that a source names, each as long as its expression makes it."""
        has_places = "__file__" in source.text or any(
            self._named(name, source) is not None for name in self._names(source)
        )
        pending: list[ast.AST] = [source.code()] if has_places else []
        while pending:
            node = pending.pop()
            place = self._value(node, source) if isinstance(node, _MAY_BE_PLACES) else None
            if place is not None:
                yield place
            else:
                pending += ast.iter_child_nodes(node)

    def _value(self, node: ast.AST, source: Source) -> str | None:
        """Return the path that an expression means, or None."""
        match node:
            case ast.Name(id=name):
                return self._named(name, source)
            case ast.Call(func=ast.Name(id="Path"), args=[ast.Name(id="__file__")]):
                return str(source.path)
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=arguments):
                return self._called(self._value(inner, source), method, arguments)
            case ast.Attribute(value=inner, attr="parent"):
                return _join(self._value(inner, source), "..")
            case ast.Subscript(
                value=ast.Attribute(value=inner, attr="parents"),
                slice=ast.Constant(value=int(count)),
            ):
                return _join(self._value(inner, source), *[".."] * (count + 1))
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=str(name))):
                return _join(self._value(left, source), name)
        return None

    def _called(self, place: str | None, method: str, arguments: list[ast.expr]) -> str | None:
        match method, arguments:
            case "resolve" | "absolute", []:
                return place
            case "with_name", [ast.Constant(value=str(name))]:
                return _join(place, "..", name)
        return None

    def _named(self, name: str, source: Source) -> str | None:
        """Return the value of a name of a module, which may be another module's."""
        if (source, name) in self._open:
            return None
        self._open.add((source, name))
        try:
            match self._names(source).get(name):
                case ast.expr() as value:
                    return self._value(value, source)
                case (str(module), str(other)) if module in self._sources:
                    return self._named(other, self._sources[module])
        finally:
            self._open.remove((source, name))
        return None


def _names(source: Source) -> dict[str, ast.expr | tuple[str, str]]:
    """Return what the names of a module mean: expressions, or names of other modules."""
    found: dict[str, ast.expr | tuple[str, str]] = {}
    for node in source.used.names:
        match node:
            case ast.ImportFrom(names=names):
                origin = source.origin(node)
                found |= {one.asname or one.name: (origin, one.name) for one in names}
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
                targets
            ) == len(values):
                pairs = zip(targets, values, strict=True)
                found |= {to.id: value for to, value in pairs if isinstance(to, ast.Name)}
    return found


def _join(place: str | None, *names: str) -> str | None:
    return None if place is None else normpath("/".join([place, *names]))
