"""Small source trees for the tests of the import guards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

from tools.guards.rust_modules import rust_crates
from tools.guards.tree import Tree


class FolderTree(Tree):
    """Every file below a folder, without git."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return tuple(sorted(path.relative_to(self.root).as_posix() for path in files))


@cache
def repository() -> Tree:
    """This repository; the graphs of one tree are built once."""
    return Tree()


def write_tree(root: Path, files: Mapping[str, str]) -> FolderTree:
    """Write files below `root`, by their paths, and return them as a tree."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return FolderTree(root)


def write_crate(root: Path, files: Mapping[str, str]) -> FolderTree:
    """Write a crate named `sample`; the paths are below its `src`."""
    return write_tree(root, {f"rust/sample/src/{name}": text for name, text in files.items()})


def edges(tree: Tree) -> set[tuple[str, str]]:
    """The imports of the crate `sample`, as paths below its `src`."""
    graph = rust_crates(tree)["sample"].graph
    prefix = "rust/sample/src/"
    return {
        (source.removeprefix(prefix), target.removeprefix(prefix))
        for source, targets in graph.items()
        for target in targets
    }
