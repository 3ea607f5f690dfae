"""Files and names that are on disk, whole, or not there at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["StoreError", "create", "sync_folder", "write"]


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
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileExistsError):  # the first one wins, and wins whole
                os.link(file.name, path)
        sync_folder(path.parent)
    return path.read_text()


def write(path: Path, data: bytes, prefix: str) -> None:
    """A file that takes its name when it is on disk; it replaces one of that name."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)
    sync_folder(path.parent)
