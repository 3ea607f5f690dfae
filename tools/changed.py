"""Print the test commands for what changed since a commit.

One line each, ``cargo ARGUMENTS`` or ``pytest FILES``.

    python -m tools.changed [COMMIT]

Without a commit it takes the newest ancestor of HEAD that was pushed, or else HEAD; work that is
not committed counts always. A changed test file runs. A changed module runs the test files that
import it directly, or whose helpers do. If there are none, it runs `NEAREST_MAX` of those that
import it through the fewest other modules, or else of those in the folder of its name. A changed
conftest or data file of tests runs the tests of its folder, and `FOLDERS` lists those of other
files. A changed Rust crate runs all its tests and those of crates that depend on it directly. Files
without tests are listed on stderr.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import grimp

from tools.guards.tree import Tree, TreeError

PACKAGES = ("pykafka_core", "spark_udfs", "tests")

NEAREST_MAX = 8
"""Test files of a module that no test imports directly; `make check` should take two minutes."""

CRATES_WITHOUT_TESTS = ("rust/bindings", "rust/fuzz")

FOLDERS = {
    "tools/": ("tests/tools",),
    "pyx/": ("tests/pyx", "tests/kernels"),
    "docs/": ("tests/docs",),
    "README.md": ("tests/docs",),
    "ARCHITECTURE.md": ("tests/docs",),
    "examples/": ("tests/docs",),
    "rust/bindings/": ("tests/pyx", "tests/kernels", "tests/log"),
    "pyproject.toml": ("tests/tools", "tests/wheel"),
    "Makefile": ("tests/tools",),
}
"""Start of a path → folders of its tests."""


def base(tree: Tree) -> str:
    """Return the newest pushed ancestor of HEAD, or HEAD where nothing has been pushed."""
    listed = tree.git("rev-list", "--boundary", "HEAD", "--not", "--remotes").split()
    return next((commit[1:] for commit in listed if commit.startswith("-")), "HEAD")


def changed_paths(tree: Tree, commit: str) -> list[str]:
    """Return the files that differ from `commit`, new and deleted ones too.

    Raises:
        GitError: There is no such commit.
    """
    listed = tree.git("diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit, "--")
    new = tree.git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted(set(filter(None, (listed + new).split("\0"))))


class Crates:
    """The packages of the workspace that have tests."""

    def __init__(self, tree: Tree) -> None:
        found = (place for path in tree.paths if (place := PurePosixPath(path)).match("rust/*/*"))
        manifests = {
            str(place.parent): tree.toml(str(place))
            for place in found
            if place.name == "Cargo.toml" and str(place.parent) not in CRATES_WITHOUT_TESTS
        }
        self._names = {folder: one["package"]["name"] for folder, one in manifests.items()}
        self._needs = {self._names[folder]: _needs(one) for folder, one in manifests.items()}

    def of(self, path: str) -> set[str]:
        """Return the packages whose tests a changed file needs."""
        if path in ("Cargo.toml", "Cargo.lock"):
            return set(self._needs)
        folder = "/".join(PurePosixPath(path).parts[:2])
        if not (name := self._names.get(folder)):
            return set()
        return {name} | {other for other, needs in self._needs.items() if name in needs}


def _needs(manifest: dict[str, Any]) -> set[str]:
    """Return the packages that a crate and its tests are compiled with."""
    tables = (manifest.get(name, {}) for name in ("dependencies", "dev-dependencies"))
    named = {name: one for table in tables for name, one in table.items()}
    return {
        one.get("package", name) if isinstance(one, dict) else name for name, one in named.items()
    }


def module_name(path: str) -> str | None:
    """Return the dotted name of a Python file of `PACKAGES`, or None."""
    place = PurePosixPath(path)
    if place.parts[0] not in PACKAGES or place.suffix not in (".py", ".pyi"):
        return None
    parts = place.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class TestFiles:
    """The test files of a tree, by the files that they belong to."""

    __test__ = False  # for pytest

    def __init__(self, tree: Tree) -> None:
        self._graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        self._files = [path for path in tree.paths if _is_test(module_name(path) or "")]

    def of(self, path: str) -> set[str]:
        """Return the test files that a changed file needs, without deleted ones."""
        found = self._below(folders(path))
        module = module_name(path) or ""
        if module in self._graph.modules:
            found |= self._importing(module)
        return found if found or _is_test(module) else nearest(path, self._namesakes(path))

    def _importing(self, module: str) -> set[str]:
        """Return the test files at the fewest imports from a module, the module included."""
        modules, reached = {module}, {module}
        if found := self._among(modules | self._importers(modules)):
            return found
        while modules := self._importers(modules) - reached:
            reached |= modules
            if found := self._among(modules):
                return nearest(module, found)
        return set()

    def _importers(self, modules: set[str]) -> set[str]:
        """Return the modules that import one of `modules` directly, or through a tests' helper."""
        direct = self._directly_importing(modules)
        helpers = {name for name in direct if name.startswith("tests.") and not _is_test(name)}
        return direct | self._directly_importing(helpers)

    def _directly_importing(self, modules: set[str]) -> set[str]:
        return set[str]().union(*map(self._graph.find_modules_that_directly_import, modules))

    def _among(self, modules: set[str]) -> set[str]:
        """Return the test files among modules, and those below a conftest among them."""
        names = {name.replace(".", "/") for name in modules}
        conftests = {name.removesuffix("/conftest") for name in names if name.endswith("/conftest")}
        files = {f"{name}.py" for name in names}.intersection(self._files)
        return files | self._below(conftests - {"tests"})

    def _below(self, folders: Iterable[str]) -> set[str]:
        starts = tuple(f"{folder}/" for folder in folders)
        return {file for file in self._files if file.startswith(starts)}

    def _namesakes(self, path: str) -> set[str]:
        """Return the tests of the folder with the name of a file's folder, or of one above it."""
        top, *names = PurePosixPath(path).parts[:-1] or ("",)
        for count in range(len(names), 0, -1):
            if top in PACKAGES and (found := self._below(["/".join(["tests", *names[:count]])])):
                return found
        if top == "tests":
            return {file for file in self._files if file.count("/") == 1}
        return self._below(["tests/spark"]) if top == "spark_udfs" else set()


def nearest(name: str, tests: set[str]) -> set[str]:
    """Return at most `NEAREST_MAX` of `tests`: those whose paths have the most words of `name`."""
    words = _words(name)
    ranked = sorted(tests, key=lambda test: (-len(words & _words(test)), test))
    return set(ranked[:NEAREST_MAX])


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name))


def _is_test(module: str) -> bool:
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


def folders(path: str) -> Iterable[str]:
    """Return the folders whose tests a changed file needs, if tests do not import it."""
    place = PurePosixPath(path)
    is_data = place.suffix != ".py" and len(place.parts) > 2
    if place.parts[0] == "tests" and (place.name == "conftest.py" or is_data):
        return (str(place.parent),)
    return {one for start, found in FOLDERS.items() if path.startswith(start) for one in found}


def main(arguments: list[str]) -> int:
    """Print the commands; return 2 for arguments that cannot be used."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(arguments) == 1 else 2
    try:
        _print(Tree(Path.cwd()), *arguments)
    except TreeError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _print(tree: Tree, commit: str | None = None) -> None:
    paths = changed_paths(tree, commit or base(tree))
    tests, crates = TestFiles(tree), Crates(tree)
    chosen = {path: tests.of(path) for path in paths}
    packages = {path: crates.of(path) for path in paths}
    if names := set[str]().union(*packages.values()):
        print("cargo --lib --tests", *(f"-p {name}" for name in sorted(names)))
    if files := set[str]().union(*chosen.values()):
        print("pytest", *sorted(files))
    for path in paths:
        if not chosen[path] and not packages[path]:
            print(f"no unit test for {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
