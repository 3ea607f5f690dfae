"""Files and names that are on disk, whole, or not there at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["StoreError", "create", "create_empty", "delete_half_written", "sync_folder", "write"]


class StoreError(ValueError):
    """The folder is not the one that goes with this query, or something in it is gone."""


def sync_folder(folder: Path) -> None:
    """Put the names in ``folder`` on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create(path: Path, text: str) -> str:
    """Make the file unless it is there; what it says then."""
    if not path.exists():
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # The first one wins, and wins whole; it may have had this one's file deleted.
        with suppress(FileExistsError, FileNotFoundError):
            os.link(name, path)
        Path(name).unlink(missing_ok=True)
        sync_folder(path.parent)
    return path.read_text()


def delete_half_written(path: Path) -> None:
    """Delete what processes that died in `create` left, if the file is there: who still writes one comes too late."""
    if path.exists():
        for left in path.parent.glob(f".{path.name}-*"):
            left.unlink(missing_ok=True)


def create_empty(path: Path) -> None:
    """Make an empty file unless one of that name is there."""
    path.touch()
    sync_folder(path.parent)


def write(path: Path, data: bytes, prefix: str) -> None:
    """A file that takes its name when it is on disk; it replaces one of that name."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)
    sync_folder(path.parent)
