"""Print the test commands for what changed since a commit.

One line each, ``cargo ARGUMENTS`` or ``pytest FILES``.

    python -m tools.changed [COMMIT]

Without a commit it compares with the one where HEAD left the main branch: that of a remote, or else
of this repository. If there is none, it compares with the parent of HEAD. Work that is not
committed counts always.

A changed test file runs. Any other file runs the test files with its name in the same area, and
those that contain its path. These are filled up to `NEAREST_MAX` with the tests of the folders in
`FOLDERS`, then with those that import it, directly or through the fewest other modules. A changed
conftest or data file of tests counts the tests of its folder. If nothing is found, the folder that
mirrors its own runs. A changed Rust file runs the tests of its crate, of those that depend on it
directly, and of those that contain its path; a test runs those of its crate.

stderr has the commit, the test files that are left to `make test`, and files without tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.guards.tree import Tree, TreeError
from tools.selection.commits import Base, base, changed_paths
from tools.selection.crates import Crates
from tools.selection.test_files import TestFiles

LEFT_SHOWN = 5
"""Test files left to `make test` that are named; the others are counted."""


def main(arguments: list[str]) -> int:
    """Print the commands; return 2 for arguments that cannot be used."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(arguments) == 1 else 2
    try:
        _select(Tree(Path.cwd()), arguments)
    except TreeError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _select(tree: Tree, arguments: list[str]) -> None:
    start = Base(arguments[0], "as asked") if arguments else base(tree)
    paths = changed_paths(tree, start.commit)
    _say(f"{len(paths)} files changed since {start.commit[:12]} ({start.reason})")
    _print_commands(tree, paths)


def _print_commands(tree: Tree, paths: list[str]) -> None:
    crates = Crates(tree)
    choice, without = TestFiles(tree, paths).of_all(paths)
    packages = {path: crates.of(path) for path in paths}
    if names := set[str]().union(*packages.values()):
        print("cargo --lib --tests", *(f"-p {name}" for name in sorted(names)))
    if choice.tests:
        print("pytest", *sorted(choice.tests))
    if choice.left:
        more = ["…"] if len(choice.left) > LEFT_SHOWN else []
        _say(f"left to make test: {len(choice.left)} test files:", *choice.left[:LEFT_SHOWN], *more)
    for path in without:
        if not packages[path]:
            _say(f"no unit test for {path}")


def _say(*words: str) -> None:
    print(*words, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
