"""A folder that remembers: what `dedup_stream` keeps there when it is given a ``store``, without Spark.

    settings.json           what the memories mean; written by the driver, and compared ever after
    query                   the id of the streaming query, which Spark keeps in the checkpoint
    bucket-0003/00000000000000000041    what bucket 3 remembers after micro-batch 41
    bucket-0003/.41-x7d2k1              a file that is being written, or was when its task died

A micro-batch reads the newest file of a micro-batch before its own, and writes one for itself. So whatever is run
again (a task, a second attempt beside the first, a micro-batch after a crash) reads what it read at first and writes
the same bytes once more, under a name that is taken only when the bytes are on disk. Spark runs again no micro-batch
but the last: the files of the two newest are kept. A file knows whether there was one before it, so that a memory
which is gone is missed, and not taken for one that never was.

A memory's file is magic, uint32 version, int64 micro-batch of the file before (-1: none), uint32 CRC of the memory,
little-endian; then the memory.
"""

import json
import os
import struct
import tempfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from spark_udfs.dedup.settings import agree, written

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Store", "StoreError"]

_HEAD: Final = struct.Struct("<4sIqI")
_MAGIC: Final = b"pkid"
_VERSION: Final = 1
_NONE: Final = -1
_FILES_KEPT: Final = 2


class StoreError(ValueError):
    """The folder is not the one that goes with this query, or something in it is gone."""


@dataclass(frozen=True)
class Store:
    """A folder on a file system that the driver and all executors see under the same path."""

    folder: Path

    def prepare(self, settings: dict[str, Any]) -> None:
        """Make the folder, at the driver, before anything runs.

        Raises:
            StoreError: It is there, and was made with other settings.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        text = written(settings)
        before = _create(self.folder / "settings.json", text)
        if not agree(before, text):
            raise StoreError(
                f"{self.folder} remembers ids under the settings {before}, and this query has {text}: "
                "go on with those, or take a new folder and a new checkpoint"
            )

    def settings(self) -> dict[str, Any]:
        """What the folder was made with; empty if it is yet to be made."""
        path = self.folder / "settings.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def open(self, query: str) -> None:
        """Bind the folder to a streaming query, in one of its tasks.

        Raises:
            StoreError: The folder is not here, or belongs to another query.
        """
        if not (self.folder / "settings.json").exists():
            raise StoreError(
                f"{self.folder} is not what the driver made: all executors must see the same folder"
            )
        before = _create(self.folder / "query", query)
        if before != query:
            raise StoreError(
                f"{self.folder} remembers the ids of query {before}, and this is {query}: "
                "a new checkpoint needs a new folder"
            )

    def load(self, bucket: int, batch: int) -> bytes | None:
        """What ``bucket`` remembered before micro-batch ``batch``; None if there was nothing yet.

        Raises:
            StoreError: It is gone, or damaged.
        """
        files = self._batches(bucket)
        before = [number for number in files if number < batch]
        if before:
            return self._read(bucket, before[-1])[1]
        if files and self._read(bucket, files[0])[0] != _NONE:
            raise StoreError(
                f"{self._folder_of(bucket)} no longer holds what was remembered before micro-batch {batch}: "
                "the checkpoint is older than the folder; take both from one time, or both new"
            )
        return None

    def save(self, bucket: int, batch: int, memory: bytes) -> None:
        """Put ``memory`` on disk as what ``bucket`` remembers after ``batch``, and forget what no one reads again."""
        folder = self._folder_of(bucket)
        folder.mkdir(exist_ok=True)
        before = [number for number in self._batches(bucket) if number < batch]
        with _replacing(folder / f"{batch:020}", f".{batch}-") as file:
            previous = before[-1] if before else _NONE
            file.write(_HEAD.pack(_MAGIC, _VERSION, previous, zlib.crc32(memory)))
            file.write(memory)
        for number in before[: 1 - _FILES_KEPT]:
            (folder / f"{number:020}").unlink(missing_ok=True)
        for left in folder.glob(".*-*"):
            if int(left.name[1:].partition("-")[0]) < batch:
                left.unlink(missing_ok=True)

    def _folder_of(self, bucket: int) -> Path:
        return self.folder / f"bucket-{bucket:04}"

    def _batches(self, bucket: int) -> list[int]:
        """The micro-batches that have a file, ascending."""
        return sorted(int(path.name) for path in self._folder_of(bucket).glob("[0-9]*"))

    def _read(self, bucket: int, batch: int) -> tuple[int, bytes]:
        """The micro-batch of the file before this one, and the memory."""
        path = self._folder_of(bucket) / f"{batch:020}"
        data = path.read_bytes()
        if len(data) < _HEAD.size:
            raise StoreError(f"{path} ends inside its head")
        magic, version, previous, crc = _HEAD.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION):
            raise StoreError(f"{path} is no memory of version {_VERSION}")
        memory = data[_HEAD.size :]
        if zlib.crc32(memory) != crc:
            raise StoreError(f"{path} is damaged: its CRC does not match")
        return int(previous), memory


def _create(path: Path, text: str) -> str:
    """Make the file unless it is there; what it says then."""
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileExistsError):  # the first one wins, and wins whole
                os.link(file.name, path)
        _sync_folder(path.parent)
    return path.read_text()


@contextmanager
def _replacing(path: Path, prefix: str) -> "Iterator[IO[bytes]]":
    """A file that takes its name when it is on disk."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=prefix, delete=False) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
