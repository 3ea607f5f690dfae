"""The Python test files that a change needs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, zip_longest
from pathlib import PurePosixPath
from typing import NamedTuple

from tools.guards.tree import Tree
from tools.selection.python_files import PythonFiles

NEAREST_MAX = 8
"""Test files of one changed file; those with its name and those that read it may be more."""

TESTS_MAX = 40
"""Test files of all changed files together; `make check` should take two minutes."""

FOLDERS = {
    "pyx/": ("tests/pyx", "tests/kernels"),
    "docs/": ("tests/docs",),
    "README.md": ("tests/docs",),
    "ARCHITECTURE.md": ("tests/docs",),
    "examples/": ("tests/docs",),
    "rust/bindings/src/core": ("tests/broker", "tests/handlers"),
    "rust/bindings/": ("tests/pyx", "tests/kernels", "tests/log", "tests/broker", "tests/cli"),
    "pyproject.toml": ("tests/tools",),
    "Makefile": ("tests/tools",),
}
"""Start of a path → folders of its tests; the first entry that fits counts."""

MIRRORS = {
    "pykafka_core": "tests",
    "spark_udfs": "tests/spark",
    "tests": "tests",
    "tools": "tests/tools",
}
"""Top-level folder of modules → the folder of tests that mirrors it."""


class Choice(NamedTuple):
    """Test files, the nearest first, and those that are left to `make test`."""

    tests: list[str]
    left: list[str]


class TestFiles:
    """The test files of a tree, by the files that they belong to."""

    __test__ = False  # for pytest

    def __init__(self, tree: Tree, deleted: Iterable[str] = ()) -> None:
        self._python = PythonFiles(tree, deleted)
        self._texts = {path: tree.text(path) for path in tree.paths if is_test_file(path)}
        marked = re.compile(r"^pytestmark\b", re.MULTILINE)
        self._costly = {path for path, text in self._texts.items() if marked.search(text)}
        self._named: dict[tuple[str, str] | None, list[str]] = defaultdict(list)
        for test in self._texts:
            place = PurePosixPath(test)
            self._named[f"tests/{_area(place)}", place.name].append(test)

    def of_all(self, paths: Iterable[str]) -> tuple[Choice, list[str]]:
        """Return at most `TESTS_MAX` test files for a change, and the files that have none."""
        choices = {path: self.of(path) for path in paths}
        own = [path for path in choices if path in self._texts]
        nearest = _interleaved(choice.tests for choice in choices.values())
        found = _unique(chain(own, nearest, *(choice.left for choice in choices.values())))
        count = min(TESTS_MAX, len({*chain(*(choice.tests for choice in choices.values()))}))
        without = [path for path, choice in choices.items() if not choice.tests]
        return Choice(found[:count], found[count:]), without

    def of(self, path: str) -> Choice:
        """Return the test files that a changed file needs, without deleted ones."""
        certain = self._certain(path)
        found = dict.fromkeys(certain)
        for tests in self._near(path):
            found |= dict.fromkeys(tests)
            if len(found) >= NEAREST_MAX:
                break
        if not found and not is_test_file(path):
            found |= dict.fromkeys(self._nearest(path, self._in_mirror(path)))
        tests, count = list(found), max(NEAREST_MAX, len(certain))
        return Choice(tests[:count], tests[count:])

    def _certain(self, path: str) -> list[str]:
        """Return a changed test, tests with the name of a module, and tests that name a file."""
        own = {path} & self._texts.keys()
        named = self._named.get(name_of_test(path), ())
        readers = self._tests_among(self._python.readers(path))
        return _unique(chain(own, named, self._nearest(path, readers)))

    def _near(self, path: str) -> Iterator[list[str]]:
        """Yield the tests of a file's folders, then those that use it, and so on."""
        yield list(_interleaved(self._nearest(path, self._below(one)) for one in folders_of(path)))
        for level in self._levels(path):
            yield self._nearest(path, level)
            if is_test_file(path):
                return

    def _levels(self, path: str) -> Iterator[set[str]]:
        """Yield the tests that use a file, those that use its users, and so on."""
        reached, level = {path}, self._python.users(path) - {path}
        while level:
            yield self._tests_among(level)
            reached |= level
            level = set[str]().union(*map(self._python.users, level)) - reached

    def _tests_among(self, files: Iterable[str]) -> set[str]:
        """Return the tests among some files, and those below each conftest but the uppermost."""
        found = set(self._texts.keys() & files)
        for place in map(PurePosixPath, files):
            if place.name == "conftest.py" and place.parent.name != "tests":
                found |= self._below(str(place.parent))
        return found

    def _nearest(self, name: str, tests: Iterable[str]) -> list[str]:
        """Return tests by how many words of `name` their paths have.

        Tests with a mark of their cost come last; folders take turns among equals.
        """
        words = _words(name)
        rank = {test: (test in self._costly, -len(words & _words(test))) for test in tests}
        turns: Counter[tuple[str, tuple[bool, int]]] = Counter()
        turn = {}
        for test in sorted(tests):
            group = (test.rpartition("/")[0], rank[test])
            turn[test] = turns[group]
            turns[group] += 1
        return sorted(tests, key=lambda test: (rank[test], turn[test], test))

    def _below(self, folder: str) -> set[str]:
        return {file for file in self._texts if file.startswith(f"{folder}/")}

    def _in_mirror(self, path: str) -> set[str]:
        """Return the tests of the folder that mirrors a file's folder, or else one above it."""
        top, *names = PurePosixPath(path).parts[:-1] or ("",)
        start = MIRRORS.get(top, "")
        for count in range(len(names), 0, -1) if start else ():
            if found := self._below("/".join([start, *names[:count]])):
                return found
        if start == "tests":
            return {file for file in self._texts if file.count("/") == 1} if top == start else set()
        return self._below(start)


def is_test_file(path: str) -> bool:
    """Return whether pytest collects a file."""
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


def name_of_test(path: str) -> tuple[str, str] | None:
    """Return the area and the name of the tests of a module, or None."""
    place, start = PurePosixPath(path), MIRRORS.get(path.partition("/")[0])
    if start is None or place.suffix not in (".py", ".pyi"):
        return None
    name = place.parent.name if place.stem == "__init__" else place.stem
    return f"{start}/{_area(place)}" if start == "tests" else start, f"test_{name}.py"


def _area(place: PurePosixPath) -> str:
    """Return the second folder of a path, if it has one."""
    return place.parts[1] if len(place.parts) > 2 else ""


def folders_of(path: str) -> tuple[str, ...]:
    """Return the folders whose tests a changed file needs, whatever imports it."""
    place = PurePosixPath(path)
    is_data = place.suffix != ".py" and len(place.parts) > 2
    if place.parts[0] == "tests" and (place.name == "conftest.py" or is_data):
        return (str(place.parent),)
    return next((found for start, found in FOLDERS.items() if path.startswith(start)), ())


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name))


def _unique(tests: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(tests))


def _interleaved(lists: Iterable[list[str]]) -> Iterator[str]:
    """Yield the first of each list, then the second of each, and so on."""
    for row in zip_longest(*lists):
        yield from (one for one in row if one is not None)
