"""The files that a guard reads: those of a git work tree, with uncommitted changes."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

ROOT = Path(__file__).resolve().parent.parent.parent

PRODUCT = ("rust", "pykafka_core", "spark_udfs", "pyx")
"""Top-level folders of the product; in ``rust`` without tests, see `Tree.is_test`."""

GENERATED = (
    "rust/wire/src/tables/",
    "pykafka_core/protocol/messages/__init__.pyi",
    "docs/SETTINGS.md",
    "docs/reference/cli.md",
    "docs/reference/error-codes.md",
    "docs/reference/metrics.md",
)
"""Prefixes of files that a tool of ours writes."""


GitCommand: TypeAlias = Literal[
    "cat-file", "diff", "diff-index", "for-each-ref", "hash-object", "ls-files", "ls-tree",
    "merge-base", "rev-list", "rev-parse",
]  # fmt: skip
"""Commands of git whose output the settings of a user do not change; `diff` only for names."""

_NEUTRAL = (
    "--no-replace-objects", "-c", "core.quotePath=off", "-c", "i18n.logOutputEncoding=UTF-8",
)  # fmt: skip


class TreeError(Exception):
    """A file or the history cannot be read; the text names it, and what to do."""


class GitError(TreeError):
    """A command of git failed, or git is missing."""


class Tree:
    """A directory under git. Paths are relative to it, with forward slashes, sorted."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.text = cache(self.read)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every file that is tracked, or new and not ignored."""
        listed = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = sorted(set(filter(None, listed.split("\0"))))
        return tuple(name for name in names if (self.root / name).is_file())

    def sources(self, *suffixes: str, under: tuple[str, ...] = ("",)) -> Iterator[str]:
        """Paths with one of `suffixes` below one of `under`, without generated files."""
        for path in self.paths:
            if (
                not path.startswith(GENERATED)
                and path.endswith(suffixes)
                and path.startswith(under)
            ):
                yield path

    def git(self, name: GitCommand, *arguments: str) -> str:
        """Return the output of a git command in this directory, the same for every user.

        Variables of git, such as ``GIT_DIR`` in a hook, would name another repository. Settings
        such as ``log.follow`` change commands for people, so `GitCommand` has none of them.

        Raises:
            GitError: The command failed, or git is missing.
        """
        command = ["git", "-C", str(self.root), *_NEUTRAL, name, *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
        except FileNotFoundError:
            raise GitError("git is missing: install it (apt-get install git)") from None
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip()
            raise GitError(f"git {name} in {self.root}: {reason}") from None
        return done.stdout.decode("utf-8", errors="surrogateescape")

    def toml(self, path: str) -> dict[str, Any]:
        """Return the content of a TOML file.

        Raises:
            TreeError: It is not valid.
        """
        try:
            return tomllib.loads(self.text(path))
        except tomllib.TOMLDecodeError as error:
            raise TreeError(f"{path}: {error}; correct the file") from None

    def read(self, path: str) -> str:
        """Return the text of a file as it is now; `text` keeps what it has read.

        Raises:
            TreeError: It is not UTF-8.
        """
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise TreeError(
                f"{path}: byte {error.start} is not UTF-8; save the file in UTF-8"
            ) from None


def is_test(path: str) -> bool:
    """Return whether a file belongs to the tests, by its place."""
    parts = PurePosixPath(path).parts
    if parts[0] != "rust":
        return parts[0] == "tests"
    folders = {"tests", "benches", "fuzz", "fuzz_targets", "testing"}
    names = ("tests.rs", "testing.rs")
    return bool(folders & set(parts[:-1])) or parts[-1] in names or path.endswith("_tests.rs")


def area(path: str) -> str:
    """The key of a file in figures, such as ``rust/log``, ``pykafka_core/broker`` or ``docs``.

    Tests inside a Rust crate count as ``tests/rust/CRATE``.
    """
    parts = PurePosixPath(path).parts
    if parts[0] == "rust" and len(parts) > 2:
        return f"tests/rust/{parts[1]}" if is_test(path) else f"rust/{parts[1]}"
    if parts[0] in ("pykafka_core", "tests") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return parts[0] if len(parts) > 1 else "."
