"""The files that a guard reads: those of a git work tree, with what is not committed yet."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent

PRODUCT = ("rust", "pykafka_core", "spark_udfs", "pyx")
"""Top-level folders of the product; in ``rust`` without tests, see `Tree.is_test`."""

GENERATED = (
    "rust/wire/src/tables/",
    "pykafka_core/protocol/messages/__init__.pyi",
    "docs/SETTINGS.md",
)
"""Prefixes of files that a tool of ours writes."""


class Tree:
    """A directory under git. Paths are relative to it, with forward slashes, sorted."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.text = cache(self._read)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every file that is tracked, or new and not ignored."""
        listed = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = sorted(set(filter(None, listed.split("\0"))))
        return tuple(name for name in names if (self.root / name).is_file())

    def sources(self, *suffixes: str, under: tuple[str, ...] = ("",)) -> Iterator[str]:
        """The paths that end in one of `suffixes` and start with one of `under`, without generated files."""
        for path in self.paths:
            if (
                not path.startswith(GENERATED)
                and path.endswith(suffixes)
                and path.startswith(under)
            ):
                yield path

    def git(self, *arguments: str) -> str:
        """Return the output of a git command in this directory; raises CalledProcessError.

        Variables of git, such as ``GIT_DIR`` in a hook, would name another repository.
        """
        command = ["git", "-C", str(self.root), *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        return done.stdout.decode("utf-8", errors="surrogateescape")

    def _read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")


def is_test(path: str) -> bool:
    """Return whether a file belongs to the tests, by its place."""
    parts = PurePosixPath(path).parts
    if parts[0] != "rust":
        return parts[0] == "tests"
    folders = {"tests", "benches", "fuzz", "fuzz_targets", "testing"}
    names = ("tests.rs", "testing.rs")
    return bool(folders & set(parts[:-1])) or parts[-1] in names or path.endswith("_tests.rs")


def area(path: str) -> str:
    """The key by which a guard counts a file: ``rust/log``, ``pykafka_core/broker``, ``tests/spark``, ``docs``.

    Tests inside a Rust crate count as ``tests/rust/CRATE``.
    """
    parts = PurePosixPath(path).parts
    if parts[0] == "rust" and len(parts) > 2:
        return f"tests/rust/{parts[1]}" if is_test(path) else f"rust/{parts[1]}"
    if parts[0] in ("pykafka_core", "tests") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return parts[0] if len(parts) > 1 else "."
