"""Print the test commands for what changed since a commit.

One line each, ``cargo ARGUMENTS`` or ``pytest FILES``.

    python -m tools.changed [COMMIT]

Without a commit it takes the last one that was pushed, or else HEAD; work that is not committed
counts always. A changed test file runs. A changed module runs the test files that import it
directly, or whose helpers do; a changed Rust crate runs its unit tests.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import grimp

from tools.guards.tree import Tree

PACKAGES = ("pykafka_core", "spark_udfs", "tests")


def base(tree: Tree) -> str:
    """Return the newest pushed ancestor of HEAD, or HEAD where nothing has been pushed."""
    try:
        return tree.git("merge-base", "HEAD", "@{upstream}").strip()
    except subprocess.CalledProcessError:
        return "HEAD"


def changed_paths(tree: Tree, commit: str) -> list[str]:
    """Return the files that differ from `commit`, with new ones and without deleted ones.

    Raises:
        ValueError: There is no such commit.
    """
    try:
        listed = tree.git("diff", "--name-only", "-z", "--diff-filter=d", commit, "--")
    except subprocess.CalledProcessError as error:
        raise ValueError(f"{commit}: {error.stderr.strip()}") from None
    new = tree.git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted(set(filter(None, (listed + new).split("\0"))))


def crates(paths: list[str]) -> list[str]:
    """Return the packages of the workspace that hold one of `paths`."""
    names = {PurePosixPath(path).parts[1] for path in paths if path.startswith("rust/")}
    return sorted(f"pykafka-{name}" for name in names - {"fuzz", "bindings"})


def module_name(path: str) -> str | None:
    """Return the dotted name of a Python file of `PACKAGES`, or None."""
    place = PurePosixPath(path)
    if place.parts[0] not in PACKAGES or place.suffix not in (".py", ".pyi"):
        return None
    parts = place.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tests_of(paths: list[str]) -> list[str]:
    """Return the test files among `paths`, and those that import them, also through helpers."""
    modules = {name for path in paths if (name := module_name(path))}
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    importers = _importers(graph, modules & graph.modules)
    names = {name for name in modules | importers if _is_test(name)}
    return sorted(f"{name.replace('.', '/')}.py" for name in names)


def _importers(graph: grimp.ImportGraph, modules: set[str]) -> set[str]:
    """Return the modules that import one of `modules`, and tests that import helpers among them."""
    direct = {one for module in modules for one in graph.find_modules_that_directly_import(module)}
    helpers = {name for name in direct if name.startswith("tests.") and not _is_test(name)}
    return direct | {
        one for name in helpers for one in graph.find_modules_that_directly_import(name)
    }


def _is_test(module: str) -> bool:
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


def commands(tree: Tree, commit: str) -> Iterator[str]:
    """Yield the lines to print, at most one for each runner."""
    paths = changed_paths(tree, commit)
    if packages := crates(paths):
        yield " ".join(["cargo", "--lib", *(f"-p {name}" for name in packages)])
    if files := [name for name in tests_of(paths) if (tree.root / name).is_file()]:
        yield " ".join(["pytest", *files])


def main(arguments: list[str]) -> int:
    """Print the commands; return 2 for arguments that cannot be used."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(arguments) == 1 else 2
    tree = Tree(Path.cwd())
    try:
        print(*commands(tree, arguments[0] if arguments else base(tree)), sep="\n")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
