"""Print the test commands for what changed since a commit.

One line each, ``cargo ARGUMENTS`` or ``pytest FILES``.

    python -m tools.changed [COMMIT]

Without a commit it takes the newest ancestor of HEAD that was pushed, or else HEAD; work that is
not committed counts always. A changed test file runs. A changed module runs the test files that
import it directly, or whose helpers do. If there are none, it runs `NEAREST_MAX` of those that
import it through the fewest other modules, or else of those in the folder of its name. A changed
conftest or data file of tests runs the tests of its folder, and `FOLDERS` lists those of other
files. A changed Rust crate runs all its tests. Files without tests are listed on stderr.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import grimp

from tools.guards.tree import Tree

PACKAGES = ("pykafka_core", "spark_udfs", "tests")

NEAREST_MAX = 8
"""Test files of a module that no test imports directly; `make check` should take two minutes."""

FOLDERS = {
    "tools/": ("tests/tools",),
    "pyx/": ("tests/pyx", "tests/kernels"),
    "docs/": ("tests/docs",),
    "README.md": ("tests/docs",),
    "ARCHITECTURE.md": ("tests/docs",),
}
"""Start of a path → folders of its tests."""


def base(tree: Tree) -> str:
    """Return the newest pushed ancestor of HEAD, or HEAD where nothing has been pushed."""
    listed = tree.git("rev-list", "--boundary", "HEAD", "--not", "--remotes").split()
    return next((commit[1:] for commit in listed if commit.startswith("-")), "HEAD")


def changed_paths(tree: Tree, commit: str) -> list[str]:
    """Return the files that differ from `commit`, new and deleted ones too.

    Raises:
        ValueError: There is no such commit.
    """
    try:
        listed = tree.git(
            "diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit, "--"
        )
    except subprocess.CalledProcessError as error:
        raise ValueError(f"{commit}: {error.stderr.decode(errors='replace').strip()}") from None
    new = tree.git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted(set(filter(None, (listed + new).split("\0"))))


def crates(paths: list[str]) -> list[str]:
    """Return the packages of the workspace that hold one of `paths`."""
    parts = [PurePosixPath(path).parts for path in paths if path.startswith("rust/")]
    names = {place[1] for place in parts if len(place) > 2}
    return sorted(f"pykafka-{name}" for name in names - {"fuzz", "bindings"})


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
        return found or nearest(path, self._namesakes(path))

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
        names = {f"{name.replace('.', '/')}.py" for name in modules}
        return names.intersection(self._files)

    def _below(self, folders: Iterable[str]) -> set[str]:
        starts = tuple(f"{folder}/" for folder in folders)
        return {file for file in self._files if file.startswith(starts)}

    def _namesakes(self, path: str) -> set[str]:
        """Return the tests of the folder of tests with the name of a product's folder."""
        top, *names = PurePosixPath(path).parts[:-1] or ("",)
        for count in range(len(names), 0, -1):
            if top in PACKAGES and (found := self._below(["/".join(["tests", *names[:count]])])):
                return found
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
    if place.parts[0] == "tests" and (place.name == "conftest.py" or place.suffix != ".py"):
        return (str(place.parent),)
    return {one for start, found in FOLDERS.items() if path.startswith(start) for one in found}


def main(arguments: list[str]) -> int:
    """Print the commands; return 2 for arguments that cannot be used."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(arguments) == 1 else 2
    tree = Tree(Path.cwd())
    commit = arguments[0] if arguments else base(tree)
    try:
        paths = changed_paths(tree, commit)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    tests = TestFiles(tree)
    chosen = {path: tests.of(path) for path in paths}
    if packages := crates(paths):
        print("cargo --lib --tests", *(f"-p {name}" for name in packages))
    if files := set[str]().union(*chosen.values()):
        print("pytest", *sorted(files))
    for path in paths:
        if not chosen[path] and not crates([path]):
            print(f"no unit test for {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
