"""The Rust packages whose tests a change needs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from tools.guards.tree import Tree, is_test

CRATES_WITHOUT_TESTS = ("rust/bindings", "rust/fuzz")

_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")

_BESIDE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]|\binclude(?:_str|_bytes)?!\(\s*"([^"]+)"')
"""The path of a file, relative to the folder of the source that names it."""

_BELOW_CRATE = re.compile(r'env!\("CARGO_MANIFEST_DIR"\)\)?\s*(?:\.join\(|,)\s*"/?([^"]+)"')
"""The path of a file or folder, relative to the crate."""


class Crates:
    """The packages of the workspace that have tests."""

    def __init__(self, tree: Tree) -> None:
        manifests = _manifests(tree)
        renamed = _renamed(tree)
        self._names = {folder: one["package"]["name"] for folder, one in manifests.items()}
        self._needs = {
            self._names[folder]: _needs(one, renamed) for folder, one in manifests.items()
        }
        self._readers: dict[str, set[str]] = defaultdict(set)
        for source in tree.paths:
            if source.startswith("rust/") and source.endswith(".rs"):
                for place in _places(source, tree.text(source)):
                    self._readers[place].add(source)

    def of(self, path: str) -> set[str]:
        """Return the packages whose tests a changed file needs."""
        if path in ("Cargo.toml", "Cargo.lock"):
            return set(self._needs)
        return set[str]().union(*map(self._compiled_with, {path} | self._sources_with(path)))

    def references(self) -> Iterator[tuple[str, str]]:
        """Yield each source that names a file or folder, and that place."""
        return ((source, place) for place, some in self._readers.items() for source in some)

    def package(self, source: str) -> str | None:
        """Return the package that a file of a crate belongs to."""
        return self._names.get("/".join(PurePosixPath(source).parts[:2]))

    def _compiled_with(self, source: str) -> set[str]:
        """Return the package of a source, and unless it is a test those that depend on it."""
        if not (name := self.package(source)):
            return set()
        if is_test(source):
            return {name}
        return {name} | {other for other, needs in self._needs.items() if name in needs}

    def _sources_with(self, path: str) -> set[str]:
        """Return the sources that contain or read a file, themselves or through others."""
        found: set[str] = set()
        pending = [path]
        while pending:
            place = PurePosixPath(pending.pop())
            for name in (place, *place.parents):
                new = self._readers.get(str(name), set()) - found
                found |= new
                pending += new
        return found


def _manifests(tree: Tree) -> dict[str, dict[str, Any]]:
    found = (place for path in tree.paths if (place := PurePosixPath(path)).match("rust/*/*"))
    return {
        str(place.parent): tree.toml(str(place))
        for place in found
        if place.name == "Cargo.toml" and str(place.parent) not in CRATES_WITHOUT_TESTS
    }


def _renamed(tree: Tree) -> dict[str, str]:
    """Return the package of each dependency that the workspace declares."""
    manifest = tree.toml("Cargo.toml") if "Cargo.toml" in tree.paths else {}
    declared = manifest.get("workspace", {}).get("dependencies", {})
    return {name: _package(name, one) for name, one in declared.items()}


def _needs(manifest: Mapping[str, Any], renamed: Mapping[str, str]) -> set[str]:
    """Return the packages that a crate and its tests are compiled with, on any target."""
    targets = manifest.get("target", {}).values()
    tables = [one.get(name, {}) for one in (manifest, *targets) for name in _DEPENDENCIES]
    named = [(name, one) for table in tables for name, one in table.items()]
    return {_package(renamed.get(name, name), one) for name, one in named}


def _package(name: str, dependency: object) -> str:
    """Return the package of a dependency, which may have another name in the crate."""
    return dependency.get("package", name) if isinstance(dependency, dict) else name


def _places(source: str, text: str) -> Iterator[str]:
    """Yield the paths of files and folders that a source names."""
    crate, folder = "/".join(source.split("/")[:2]), str(PurePosixPath(source).parent)
    for found in _BESIDE.finditer(text):
        yield normpath(f"{folder}/{found[1] or found[2]}")
    for found in _BELOW_CRATE.finditer(text):
        yield normpath(f"{crate}/{found[1]}")
