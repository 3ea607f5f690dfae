"""Import cycles among the source files of each Rust crate.

A file imports another if its code names an item that the other defines, by a `use` declaration or
by a path; a re-export is followed to the file that defines the item. A macro needs neither
(`#[macro_use]`). `mod child;` is not an import, a child that uses its parent's items is. Tests are
left out. Method calls are invisible: they name no path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath

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
from tools.guards.rust_source import PathUse, Scope, Use, parse
from tools.guards.tree import Tree, is_test

ROOTED = ("crate", "self", "super")
"""First segments of paths that always lead into the same crate."""


class UnresolvedError(Exception):
    """Paths whose definition the guard cannot find, so that the graph would lack their imports."""


@dataclass(eq=False)
class Module:
    """A module of a crate; inline modules are modules too, in the file of their parent."""

    path: tuple[str, ...]  # from the root of the crate, which has none
    file: str
    scope: Scope
    parent: Module | None = None
    children: dict[str, Module] = field(default_factory=dict)

    def ancestor(self, levels: int) -> Module | None:
        """The module that `levels` times `super` means."""
        module: Module | None = self
        for _ in range(levels):
            module = module.parent if module is not None else None
        return module

    def all(self) -> Iterator[Module]:
        """This module and those in it."""
        yield self
        for child in self.children.values():
            yield from child.all()


@dataclass(frozen=True, slots=True)
class _Found:
    """The meaning of a name: a module, items of one or several namespaces, or both."""

    name: str
    module: Module | None = None
    files: frozenset[str] = frozenset()  # that define the items; empty for another crate

    @property
    def is_foreign(self) -> bool:
        """Whether another crate defines it."""
        return self.module is None and not self.files


@dataclass(frozen=True, slots=True)
class CrateGraph:
    """The source files of a crate without its tests, and their imports."""

    files: frozenset[str]
    graph: Graph


@cache
def rust_crates(tree: Tree) -> dict[str, CrateGraph]:
    """Return the files and imports of each crate, by its folder under `rust`.

    Raises:
        UnresolvedError: Paths into the crate that lead to no item, files that no module declares,
        or modules
            without a file; each with its place.
    """
    crates = {}
    problems: list[str] = []
    for name, root in _roots(tree).items():
        crate = _Crate(tree, name, root)
        crates[name] = CrateGraph(crate.declared(), graph_of(crate.imports()))
        problems += crate.problems
    if problems:
        raise UnresolvedError("\n".join(problems))
    return crates


def _roots(tree: Tree) -> dict[str, str]:
    """The root file of each crate: that of its library, or of its program if it has no library."""
    roots: dict[str, str] = {}
    for path in tree.paths:
        parts = PurePosixPath(path).parts
        is_source = len(parts) == 4 and (parts[0], parts[2]) == ("rust", "src")
        if is_source and parts[3] in ("lib.rs", "main.rs"):  # in this order
            roots.setdefault(parts[1], path)
    return roots


class _Crate:
    """The modules of one crate and what their paths mean."""

    def __init__(self, tree: Tree, name: str, root: str) -> None:
        self.problems: list[str] = []
        self._tree = tree
        self._source = f"rust/{name}/src"
        self._files = {path for path in tree.paths if path.startswith(f"{self._source}/")}
        self._tests: set[str] = set()
        self._known: dict[tuple[Module, str], _Found | None] = {}
        self.root = self._load((), root, None)
        self._report_undeclared()

    # Modules and their files.

    def _load(self, path: tuple[str, ...], file: str, parent: Module | None) -> Module:
        try:
            scope = parse(self._tree.text(file))
        except SyntaxError as error:
            self.problems.append(f"{file}: {error}")
            scope = Scope()
        return self._module(path, file, scope, parent)

    def _module(
        self, path: tuple[str, ...], file: str, scope: Scope, parent: Module | None
    ) -> Module:
        module = Module(path, file, scope, parent)
        for name, inner in scope.inline.items():
            module.children[name] = self._module((*path, name), file, inner, module)
        for name in scope.files:
            self._load_child(module, name)
        self._tests.update(_stem(self._source, (*path, name)) for name in scope.test_files)
        return module

    def _load_child(self, module: Module, name: str) -> None:
        stem = _stem(self._source, (*module.path, name))
        candidates = {f"{stem}.rs", f"{stem}/mod.rs"} & self._files
        if len(candidates) != 1:
            places = f"{stem}.rs or {stem}/mod.rs"
            self.problems.append(f"{module.file}: `mod {name}` needs exactly one file, {places}")
        for file in candidates:
            if is_test(file):
                self.problems.append(
                    f"{module.file}: the name of `mod {name}` is one of tests: add #[cfg(test)], or "
                    "rename the module"
                )
            module.children[name] = self._load((*module.path, name), file, module)

    def declared(self) -> frozenset[str]:
        """The files of the modules, without tests."""
        return frozenset(module.file for module in self.root.all())

    def _report_undeclared(self) -> None:
        """Report the files that no module declares; their imports would be missing."""
        for file in sorted(self._files - self.declared()):
            if file.endswith(".rs") and not is_test(file) and not self._is_in_tests(file):
                self.problems.append(
                    f"{file}: no `mod` declares this file: delete it or declare it"
                )

    def _is_in_tests(self, file: str) -> bool:
        return any(file.startswith((f"{stem}.rs", f"{stem}/")) for stem in self._tests)

    # The meaning of names.

    def imports(self) -> Iterator[Import]:
        """The imports between the files of this crate; fills `problems`."""
        lines: dict[tuple[str, str], int] = {}
        names: dict[tuple[str, str], set[str]] = defaultdict(set)
        for module in self.root.all():
            for line, found in self._meanings(module):
                for target in found.files - {module.file}:
                    edge = (module.file, target)
                    lines[edge] = min(line, lines.get(edge, line))
                    names[edge].add(found.name)
        for source, target in sorted(lines):
            edge = (source, target)
            yield Import(source, target, lines[edge], tuple(sorted(names[edge])))

    def _meanings(self, module: Module) -> Iterator[tuple[int, _Found]]:
        """Yield the meanings of the imports and paths of one module, with their lines."""
        for use in module.scope.uses:
            if use.name == "*":
                yield from ((use.line, found) for found in self._through_glob(module, use))
            elif found := self._resolve_or_report(module, use):
                yield use.line, found
        for path in module.scope.paths:
            if found := self._resolve_or_report(module, path):
                yield path.line, found
        for name, line in module.scope.invoked.items():
            yield line, _Found(name, None, self._macro_files(module, name))

    def _macro_files(self, module: Module, name: str) -> frozenset[str]:
        """Files that may define a macro without a path: the nearest parent, or any other one."""
        if any(use.name == name for use in module.scope.uses):
            return frozenset()  # an import, which counts on its own
        defining = frozenset(each.file for each in self.root.all() if name in each.scope.macros)
        parent: Module | None = module
        while parent is not None:
            if parent.file in defining:
                return frozenset({parent.file})
            parent = parent.parent
        return defining

    def _through_glob(self, module: Module, use: Use) -> Iterator[_Found]:
        """The names that a file uses from a glob import."""
        found = self._resolve_or_report(module, use)
        if found is None or found.module is None or found.module is module:
            if found is not None:
                yield found
            return
        for name in sorted(set(re.findall(r"[A-Za-z_]\w*", self._tree.text(module.file)))):
            if (item := self._lookup(found.module, name)) and name not in module.scope.items:
                yield item

    def _resolve_or_report(self, module: Module, use: Use | PathUse) -> _Found | None:
        found = self.resolve(module, use.path)
        if found is None and use.path[0] in ROOTED:
            path = "::".join(use.path)
            self.problems.append(
                f"{module.file}:{use.line}: cannot find `{path}`: name the item by the module that defines "
                "it; if the path compiles, teach tools/guards/rust_modules.py to follow it"
            )
        return found

    def resolve(self, module: Module, path: Sequence[str]) -> _Found | None:
        """Return what a path in `module` means, up to its first item; None for an unknown name.

        A path that starts at another crate is unknown, too.
        """
        start, rest = _start(self.root, module, path)
        if start is None or not rest:
            return _Found(path[-1], start) if start is not None else None
        found = self._lookup(start, rest[0])
        for name in rest[1:]:
            if found is None or found.module is None:
                break
            found = self._lookup(found.module, name)
        return found

    def _lookup(self, module: Module, name: str) -> _Found | None:
        """Resolve a name in a module by its items and modules, its imports, then its globs."""
        key = (module, name)
        if key not in self._known:
            self._known[key] = None  # for an import that leads back to this name
            self._known[key] = self._find(module, name)
        return self._known[key]

    def _find(self, module: Module, name: str) -> _Found | None:
        child = module.children.get(name)
        own = frozenset({module.file} if name in module.scope.items else ())
        found = [_Found(name, child, own)] if child or own else []
        found += [self._import(module, use) for use in module.scope.uses if use.name == name]
        if not found:
            found = list(self._globs(module, name))
        if not found and name in module.scope.generated:
            return _Found(name, None, frozenset({module.file}))
        if not found:
            return _Found(name) if self._has_foreign_glob(module) else None
        inner = next((each.module for each in found if each.module), None)
        return _Found(found[0].name, inner, frozenset().union(*(each.files for each in found)))

    def _import(self, module: Module, use: Use) -> _Found:
        """Return the items of an import; no items of this crate if it leads to another one."""
        return self.resolve(module, use.path) or _Found(use.name)

    def _globs(self, module: Module, name: str) -> Iterator[_Found]:
        targets = [self.resolve(module, use.path) for use in module.scope.uses if use.name == "*"]
        for inner in [target.module for target in targets if target and target.module]:
            if found := self._lookup(inner, name):
                yield found

    def _has_foreign_glob(self, module: Module) -> bool:
        """Whether a name that is found nowhere else may come from another crate's prelude."""
        globs = [use.path for use in module.scope.uses if use.name == "*"]
        meanings = [self.resolve(module, path) for path in globs if path[0] not in ROOTED]
        return any(found is None or found.is_foreign for found in meanings)


def _stem(source: str, path: Sequence[str]) -> str:
    return "/".join((source, *path))


def _start(
    root: Module, module: Module, path: Sequence[str]
) -> tuple[Module | None, Sequence[str]]:
    """The module where a path starts, and the segments after it."""
    if path[0] == "crate":
        return root, path[1:]
    rest = path[1:] if path[0] == "self" else path
    levels = next((n for n, segment in enumerate(rest) if segment != "super"), len(rest))
    return module.ancestor(levels), rest[levels:]


def measure(tree: Tree) -> list[Measure]:
    """Count the import cycles of each crate, and the files of its largest one."""
    counts: dict[str, int] = {}
    findings: dict[str, list[Finding]] = {}
    report: dict[str, str] = {}
    rise = layer_list(tree).rise
    for crate, code in rust_crates(tree).items():
        found = cycles(code.graph)
        counts[f"{crate}.cycles"] = len(found)
        counts[f"{crate}.largest"] = len(found[0]) if found else 0
        removals = [imports_to_remove(code.graph, cycle, rise) for cycle in found]
        findings[f"{crate}.cycles"] = [
            _cycle_finding(code.graph, cycle, removed[0])
            for cycle, removed in zip(found, removals, strict=True)
        ]
        findings[f"{crate}.largest"] = _removal_findings(found, removals)
        report[f"{crate}.files"] = str(len(code.files))
        report[f"{crate}.sizes"] = ", ".join(str(len(cycle)) for cycle in found)
    return [Measure("rust_import_cycles", counts, findings, report)]


def _cycle_finding(graph: Graph, cycle: frozenset[str], removed: Import) -> Finding:
    """A shortest cycle through the import that is best removed."""
    files = shortest_cycle(within(graph, cycle), removed)
    path = " → ".join(map(short_name, files))
    text = f"cycle {path}" + (f", one of {len(cycle)} files" if len(cycle) >= len(files) else "")
    return Finding(removed.source, removed.line, text, removed.advice(short_name(removed.target)))


def _removal_findings(
    found: Sequence[frozenset[str]], removals: Sequence[Sequence[Import]]
) -> list[Finding]:
    """The imports without which the files of the largest component form no cycle."""
    if not found:
        return []
    text = f"one of {len(removals[0])} imports that join {len(found[0])} files into cycles"
    return [
        Finding(each.source, each.line, text, each.advice(short_name(each.target)))
        for each in removals[0]
    ]


def short_name(path: str) -> str:
    """A source file's path inside its crate."""
    return path.partition("/src/")[2] or path
