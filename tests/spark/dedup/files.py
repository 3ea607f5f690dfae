"""Micro-batches on a folder without Spark, with the tasks' code, and disks that count or fail."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from spark_udfs.dedup import increments
from spark_udfs.dedup.attempts import Attempt
from spark_udfs.dedup.increments import listed
from spark_udfs.dedup.store import Store, prepare
from spark_udfs.dedup.stream import _claim

Id = tuple[int, int]
"""The two halves of a fingerprint; the first one is signed, as in Spark."""

CHANGES = ("fsync", "open", "replace", "rename", "unlink", "link", "mkdir", "rmdir")
"""The functions of `os` that change the disk, after writes to files without a name."""


class Query:
    """A streaming query on a folder: the actions of Spark's driver and tasks.

    The clock of its driver, ``now_ms``, is at the latest time of a row.
    """

    def __init__(self, folder: Path, buckets: int, horizon_ms: int | None = None) -> None:
        self.folder, self.horizon_ms, self.now_ms = folder, horizon_ms, 0
        self.execution, self.application = 0, uuid4().hex
        self.start(buckets)

    def start(self, buckets: int | None) -> None:
        """Start like the driver, from the checkpoint."""
        self.again()
        settings = {"types": ["string"], "horizon_ms": self.horizon_ms, "event_time": True}
        self.store: Store = prepare(self.folder, settings, buckets, 1, self.application)
        self.buckets = self.store.layout.buckets

    def again(self) -> None:
        """Start the same frame again."""
        self.execution += 1

    def run(self, batch: int, ids: Sequence[Id], times: Sequence[int] = ()) -> list[int]:
        """Run a micro-batch, with a task per nonempty bucket; return which rows are new."""
        self.now_ms = max([self.now_ms, *times])
        new: list[int] = []
        for bucket in range(self.buckets):
            rows = [at for at, (first, _) in enumerate(ids) if first % self.buckets == bucket]
            if rows:
                new += self.task(batch, ids, rows, times)
        return sorted(new)

    def task(
        self, batch: int, ids: Sequence[Id], rows: Sequence[int], times: Sequence[int] = ()
    ) -> list[int]:
        attempt = self.store.open("query", batch, self.execution)
        halves = [np.array([ids[at][half] for at in rows], np.int64) for half in (0, 1)]
        columns = [*halves, np.zeros(len(rows), np.int64)]
        if self.horizon_ms is not None:
            columns += [
                np.full(len(rows), self.now_ms),
                np.array([times[at] for at in rows], np.int64),
            ]
        new = _claim(self.store, batch, attempt, self.horizon_ms, columns)
        return [rows[at] for at in new.tolist()]

    def run_empty_task(self, batch: int) -> None:
        """Run a task of a bucket without rows."""
        self.store.open("query", batch, self.execution)

    def files(self, bucket: int = 0) -> list[str]:
        return sorted(os.listdir(self.store.bucket(bucket)))

    def increment(self, batch: int) -> Path:
        """Return the file with that micro-batch's additions to the first bucket."""
        folder = self.store.bucket(0)
        [path] = [folder / span.name() for span in listed(folder) if span.is_of(batch)]
        return path

    def attempt(self) -> Attempt:
        """Return the current attempt."""
        return Attempt.of(self.store.start, self.execution, self.application)


def new_worker() -> None:
    """Drop the caches, as in a new worker."""
    increments._CACHE.clear()


class Crashed(BaseException):
    """The process ended: no code may catch it."""


@contextmanager
def changes(of: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Call ``of`` before each change, with the name of the function and its arguments."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, _announced(name, getattr(os, name), of))
        yield


def _announced(
    name: str, function: Callable[..., Any], of: Callable[[str, tuple[Any, ...]], None]
) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if name != "open" or _creates(*arguments):
            of(name, arguments)
        return function(*arguments, **named)

    return call


def _creates(path: Any, flags: int, *_: Any) -> bool:
    """Return whether `os.open` creates a file that is not temporary."""
    return flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT and not os.path.exists(path)


@contextmanager
def crash_before(number: int) -> Iterator[None]:
    """Crash before the change of that number, from 0."""
    count = 0

    def of(_: str, __: tuple[Any, ...]) -> None:
        nonlocal count
        if count >= number:
            raise Crashed
        count += 1

    with changes(of):
        yield


def count_changes(work: Callable[[], None]) -> int:
    """Return the number of changes that ``work`` makes."""
    names: list[str] = []
    with changes(lambda name, _: names.append(name)):
        work()
    return len(names)


class Power:
    """A disk that keeps only synced data; a power cut may lose the rest."""

    def __init__(self) -> None:
        self.synced: set[int] = set()  # inodes of files
        self.renamed: dict[Path, tuple[Path, bytes | None]] = {}  # by new name: old content
        self.unlinked: dict[Path, bytes] = {}
        self.created: set[Path] = set()

    def hear(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Record a change before it is made."""
        if name == "fsync":
            path = Path(os.readlink(f"/proc/self/fd/{arguments[0]}"))
            self.synced.add(path.stat().st_ino)
            for lost in (self.renamed, self.unlinked):
                for other in [other for other in lost if other.parent == path]:
                    del lost[other]
            self.created -= set(path.iterdir()) if path.is_dir() else set()
        elif name == "open":
            self.created.add(Path(arguments[0]))
        elif name == "replace":
            source, target = map(Path, arguments)
            assert source.stat().st_ino in self.synced, "a name for what is not on disk"
            self.renamed[target] = source, target.read_bytes() if target.exists() else None
        elif name == "unlink":
            path = Path(arguments[0])
            self.unlinked[path] = path.read_bytes()

    def cut(self, stays_deleted: Callable[[Path], bool]) -> None:
        """Restore all names as of the last sync of their folder, except some deleted ones."""
        for path, content in self.unlinked.items():
            if not stays_deleted(path):
                path.write_bytes(content)
        for path, (source, before) in self.renamed.items():
            if before is None:
                path.replace(source)
            else:
                path.write_bytes(before)
        for path in self.created:
            path.unlink(missing_ok=True)
