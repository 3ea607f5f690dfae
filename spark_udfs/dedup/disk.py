"""Atomic and durable creation of files and names."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["StoreError", "create", "create_empty", "delete_half_written", "sync_folder", "write"]


class StoreError(ValueError):
    """The folder does not belong to this query, or a file in it is missing."""


def sync_folder(folder: Path) -> None:
    """Sync the names in ``folder`` to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create(path: Path, text: str) -> str:
    """Create the file unless it exists; return its content."""
    if not path.exists():
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # The first link wins with complete content. Another process may have deleted our file.
        with suppress(FileExistsError, FileNotFoundError):
            os.link(name, path)
        Path(name).unlink(missing_ok=True)
        sync_folder(path.parent)
    return path.read_text()


def delete_half_written(path: Path) -> None:
    """If the file exists, delete temporary files that `create` left in processes that died.

    A process that still writes one is too late to create the file.
    """
    if path.exists():
        for left in path.parent.glob(f".{path.name}-*"):
            left.unlink(missing_ok=True)


def create_empty(path: Path) -> None:
    """Create an empty file unless the name exists."""
    path.touch()
    sync_folder(path.parent)


def write(path: Path, data: bytes, prefix: str) -> None:
    """Write a file that gets its name once it is on disk; an existing file is replaced."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)
    sync_folder(path.parent)
