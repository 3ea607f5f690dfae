"""The layers of `tools/layers.toml`, and the layer of each source file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from tools.guards.tree import Tree

LAYERS = "tools/layers.toml"
PACKAGES = "packages"
"""The table that judges imports from one Python package to another."""


class LayersError(Exception):
    """The list of layers does not fit the files; each line of the text names a module to move."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Modules that may import each other and those of the layers below."""

    name: str
    modules: tuple[str, ...]
    height: int  # 0 for the lowest layer of its table


@dataclass(frozen=True)
class LayerTable:
    """The layers of one crate or package."""

    key: str  # ``rust/CRATE``, a folder of Python code, or `PACKAGES`
    layers: tuple[Layer, ...]  # the highest first

    @property
    def folder(self) -> str:
        """Where the modules are, with a slash at the end; empty for the root of the repository."""
        if self.key == PACKAGES:
            return ""
        return f"{self.key}/src/" if self.key.startswith("rust/") else f"{self.key}/"

    @cached_property
    def _by_module(self) -> dict[str, Layer]:
        return {module: layer for layer in self.layers for module in layer.modules}

    def covers(self, path: str) -> bool:
        """Whether a file is in the folder of this table, and in its language."""
        return path.startswith(self.folder) and not (self.key == PACKAGES and path.endswith(".rs"))

    def entry_of(self, path: str) -> str | None:
        """The longest entry that covers a file, if there is one."""
        if not self.covers(path):
            return None
        module = PurePosixPath(path.removeprefix(self.folder)).with_suffix("")
        candidates = map(str, (module, *module.parents))
        return next((name for name in candidates if name in self._by_module), None)

    def layer_of(self, path: str) -> Layer | None:
        """The layer of a file; None for a file that this table does not cover."""
        entry = self.entry_of(path)
        return None if entry is None else self._by_module[entry]

    def problems(self, files: Iterable[str]) -> Iterator[str]:
        """Modules in no layer or in several, and entries without a module.

        Args:
            files: Every source file that belongs to a layer of some table.
        """
        inside = [path for path in files if self.covers(path)]
        names = ", ".join(layer.name for layer in self.layers)
        entries = {path: self.entry_of(path) for path in inside}
        for path in sorted(path for path, entry in entries.items() if entry is None):
            module = PurePosixPath(path.removeprefix(self.folder)).with_suffix("")
            yield f"{path} is in no layer: add `{module}` to a layer of [{self.key}]: {names}"
        yield from self._doubled()
        for unused in sorted(self._by_module.keys() - set(entries.values())):
            yield f"`{unused}` of [{self.key}] covers no file: remove it from its layer"

    def _doubled(self) -> Iterator[str]:
        for module in sorted(self._by_module):
            names = [
                layer.name for layer in self.layers for each in layer.modules if each == module
            ]
            if len(names) > 1:
                yield f"`{module}` of [{self.key}] is in the layers {' and '.join(names)}: keep one"


@dataclass(frozen=True)
class LayerList:
    """The tables of one tree."""

    tables: tuple[LayerTable, ...]

    @property
    def packages(self) -> tuple[str, ...]:
        """The Python packages that have layers."""
        entries = (
            entry
            for table in self.tables
            if table.key == PACKAGES
            for layer in table.layers
            for entry in layer.modules
        )
        return tuple(sorted({entry.partition("/")[0] for entry in entries}))

    def table_of(self, source: str, target: str) -> LayerTable | None:
        """The table of the smallest folder that contains both files."""
        fitting = (table for table in self.tables if table.covers(source) and table.covers(target))
        return max(fitting, key=lambda table: len(table.folder), default=None)

    def rise(self, source: str, target: str) -> int:
        """Number of layers that an import points up; at most 0 if it points down or sideways."""
        table = self.table_of(source, target)
        if table is None:
            return 0
        importer, imported = table.layer_of(source), table.layer_of(target)
        return imported.height - importer.height if importer and imported else 0

    def check(self, files: Iterable[str]) -> None:
        """Raise LayersError unless each file is in exactly one layer of every table around it."""
        listed = sorted(files)
        problems = [each for table in self.tables for each in table.problems(listed)]
        crates = {"/".join(path.split("/")[:2]) for path in listed if path.startswith("rust/")}
        for crate in sorted(crates - {table.key for table in self.tables}):
            problems.append(f'{crate} has no layers: add a table ["{crate}"]')
        if problems:
            raise LayersError("\n".join(f"{LAYERS}: {problem}" for problem in problems))


def layer_list(tree: Tree) -> LayerList:
    """Read the layers of a tree; no tables if it has no such file.

    Raises:
        LayersError: An entry of the file has another shape.
        TreeError: The file is not TOML.
    """
    if not (tree.root / LAYERS).is_file():
        return LayerList(())
    return LayerList(tuple(_table(key, value) for key, value in tree.toml(LAYERS).items()))


def _table(key: str, value: object) -> LayerTable:
    match value:
        case {"layers": list(layers), **rest} if not rest:
            height = len(layers) - 1
            return LayerTable(
                key, tuple(_layer(key, each, height - place) for place, each in enumerate(layers))
            )
    raise LayersError(f"{LAYERS}: [{key}] needs `layers` and nothing else")


def _layer(key: str, value: object, height: int) -> Layer:
    match value:
        case {"name": str(name), "modules": list(modules), **rest} if not rest:
            return Layer(name, tuple(str(module) for module in modules), height)
    raise LayersError(f"{LAYERS}: [{key}] has a layer without `name` and `modules`: {value}")
