"""Uses of modules and files by the Python files of a tree.

A module is used by those that import it, and by those with its name in a string: a program for
``python -m``, or a module that is loaded when it is first needed. A file or folder is read by a
module that contains its path: as a string, or as an expression, see `places`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tools.guards.tree import Tree
from tools.selection.places import Places
from tools.selection.sources import PRODUCT, Source, module_name, sources

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class PythonFiles:
    """Modules, and the modules and files that they use."""

    def __init__(self, tree: Tree, deleted: Iterable[str] = ()) -> None:
        self._files = {*tree.paths, *deleted}
        self._present = frozenset(tree.paths)
        self._folders = {
            str(folder) for path in self._files for folder in PurePosixPath(path).parents[:-1]
        }
        self._modules = {name for path in self._files if (name := module_name(path))}
        self._users: dict[str, set[str]] = defaultdict(set)
        self._readers: dict[str, set[str]] = defaultdict(set)
        found = list(sources(tree))
        places = Places(found)
        for source in found:
            for module in self._used(source):
                self._users[module].add(str(source.path))
            for place in self._read(source, places):
                self._readers[place].add(str(source.path))

    def users(self, path: str) -> set[str]:
        """Return the Python files that use a file: import, start, load or read it."""
        return self._users.get(module_name(path) or "", set()) | self.readers(path)

    def readers(self, path: str) -> set[str]:
        """Return the Python files that name a file or a folder above it.

        Tests list the files of a folder of the product, and do not read their text.
        """
        found = set(self._readers.get(path, ()))
        place = PurePosixPath(path)
        is_code = place.suffix in (".py", ".rs") and place.parts[0] in (*PRODUCT, "rust")
        if not is_code or path not in self._present:
            found.update(*(self._readers.get(str(folder), ()) for folder in place.parents))
        return found

    def references(self) -> Iterator[tuple[str, str]]:
        """Yield each Python file that names a file or folder, and that place."""
        return ((file, place) for place, some in self._readers.items() for file in some)

    def _used(self, source: Source) -> set[str]:
        """Return the modules that a source imports, or names in a string."""
        found = {name for name in source.used.strings if "." in name}
        for node in source.used.imports:
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                origin = source.origin(node)
                names = [self._imported(origin, name) for name in names]
            found.update(names)
        if "importlib" in found:
            found |= {f"{source.package}.{name}" for name in source.used.strings}
        programs = {f"{name}.__main__" for name in source.used.strings}
        return (found | programs) & self._modules - {source.module}

    def _imported(self, origin: str, name: str) -> str:
        """Return the module that an import of a name leads to: its own, or where it is from."""
        module = f"{origin}.{name}"
        return module if module in self._modules else origin

    def _read(self, source: Source, places: Places) -> set[str]:
        """Return the files and folders that a source outside of the product names.

        The tests of tools write small trees, in which strings are names.
        """
        if source.path.parts[0] in PRODUCT:
            return set()
        strings = () if source.path.is_relative_to("tests/tools") else source.used.strings
        named = {text for text in strings if text in self._files}
        named |= {folder for text in strings if (folder := self._package(text))}
        named |= set(places.of(source)) & (self._files | self._folders)
        return named - set(map(str, (source.path, *source.path.parents)))

    def _package(self, text: str) -> str | None:
        """Return the folder of a package without ``__init__.py``, for its dotted name."""
        if "." not in text or not _DOTTED.fullmatch(text) or text in self._modules:
            return None
        folder = text.replace(".", "/")
        return folder if folder in self._folders else None
