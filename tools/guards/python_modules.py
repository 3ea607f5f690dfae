"""Imports among the modules of the Python packages, imports for types included."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import grimp

from tools.guards.figures import Finding, Measure
from tools.guards.imports import (
    Graph,
    Import,
    cycles,
    graph_of,
    imports_to_remove,
    shortest_cycle,
    within,
)
from tools.guards.layer_list import layer_list
from tools.guards.tree import Tree


class ForeignModuleError(Exception):
    """A module of a listed package was found elsewhere than in the tree."""


class UnreadModuleError(Exception):
    """A file of a listed package is in a folder without ``__init__.py``."""


@dataclass(frozen=True, slots=True)
class PythonCode:
    """The modules of some packages as files, and their imports."""

    files: frozenset[str]
    graph: Graph


@cache
def python_code(tree: Tree) -> PythonCode:
    """Return the imports of the packages that `tools/layers.toml` lists.

    Raises:
        ForeignModuleError: A package is found outside the tree.
        UnreadModuleError: A file is not part of its package.
    """
    packages = layer_list(tree).packages
    if not packages:
        return PythonCode(frozenset(), {})
    with _importable(tree):
        modules = grimp.build_graph(*packages, exclude_type_checking_imports=False, cache_dir=None)
    files = {module: _file(tree, module) for module in modules.modules}
    if unread := _sources(tree, packages) - set(files.values()):
        raise UnreadModuleError(
            f"{', '.join(sorted(unread))}: no package; add an __init__.py to the folder"
        )
    imports = [
        found
        for source in sorted(files)
        for target in sorted(modules.find_modules_directly_imported_by(source))
        if (found := _import(tree, modules, files, source, target)) is not None
    ]
    return PythonCode(frozenset(files.values()), graph_of(imports))


@contextmanager
def _importable(tree: Tree) -> Iterator[None]:
    """Let grimp find the packages of a tree before any installed ones."""
    sys.path.insert(0, str(tree.root))
    try:
        yield
    finally:
        sys.path.remove(str(tree.root))


def _sources(tree: Tree, packages: Iterable[str]) -> set[str]:
    under = tuple(f"{package}/" for package in packages)
    return {path for path in tree.paths if path.endswith(".py") and path.startswith(under)}


def _file(tree: Tree, module: str) -> str:
    stem = module.replace(".", "/")
    for path in (f"{stem}/__init__.py", f"{stem}.py"):
        if (tree.root / path).is_file():
            return path
    raise ForeignModuleError(f"{module} has no file in {tree.root}: rename it or remove the other")


def _import(
    tree: Tree, modules: grimp.ImportGraph, files: dict[str, str], source: str, target: str
) -> Import | None:
    """One import with its names; None if all of them are compiled modules.

    Grimp takes a compiled module, which has a stub but no source, for the package that contains it.
    """
    details = modules.get_import_details(importer=source, imported=target)
    lines = sorted(detail["line_number"] for detail in details)
    path = files[source]
    names = sorted({name for line in lines for name in _names(tree, path, line, target)})
    if files[target].endswith("/__init__.py"):
        names = [name for name in names if not _is_compiled(tree, target, name)]
        if not names:
            return None
    return Import(path, files[target], lines[0], tuple(names))


def _is_compiled(tree: Tree, package: str, name: str) -> bool:
    return (tree.root / package.replace(".", "/") / f"{name}.pyi").is_file()


def _names(tree: Tree, path: str, line: int, target: str) -> Sequence[str]:
    """The names that the statements at a line take from a module.

    The only name of an import of the whole module is its own.
    """
    last = target.rpartition(".")[2]
    for statement in _statements(tree, path).get(line, ()):
        module = statement.module or ""
        if f".{module}".endswith(f".{last}"):
            return [alias.name for alias in statement.names]
        parent, _, name = module.rpartition(".")
        if parent == target:  # a name of a compiled module
            return [name]
    return [last]


@cache
def _statements(tree: Tree, path: str) -> Mapping[int, Sequence[ast.ImportFrom]]:
    """The ``from`` imports of a file by the line where they start."""
    found = defaultdict[int, list[ast.ImportFrom]](list)
    for node in ast.walk(ast.parse(tree.text(path), path)):
        if isinstance(node, ast.ImportFrom):
            found[node.lineno].append(node)
    return found


def measure(tree: Tree) -> list[Measure]:
    """Count the import cycles of each package."""
    code = python_code(tree)
    counts: dict[str, int] = {}
    findings: dict[str, list[Finding]] = {}
    for package in layer_list(tree).packages:
        files = frozenset(path for path in code.files if path.startswith(f"{package}/"))
        graph = within(code.graph, files)
        found = cycles(graph)
        counts[package] = len(found)
        findings[package] = [_finding(tree, graph, cycle) for cycle in found]
    return [Measure("python_import_cycles", counts, findings)]


def _finding(tree: Tree, graph: Graph, cycle: frozenset[str]) -> Finding:
    removed = imports_to_remove(graph, cycle, layer_list(tree).rise)[0]
    path = " → ".join(shortest_cycle(within(graph, cycle), removed))
    return Finding(removed.source, removed.line, f"cycle {path}", removed.advice(removed.target))
