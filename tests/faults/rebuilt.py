"""Offset and time indexes of a topic: as stored, and as rebuilt from the batches."""

import shutil
from pathlib import Path

from pykafka_core.log import Log, LogConfig

Indexes = dict[str, list[bytes]]
"""The stored entries of each index file, by its path in the data directory."""

ENTRY_BYTES = {".index": 8, ".timeindex": 12}


def stored(data: Path, topic: str) -> Indexes:
    """Return the contents of the index files of a data directory that no process has open."""
    paths = [path for path in data.glob(f"{topic}-*/*") if path.suffix in ENTRY_BYTES]
    return {str(path.relative_to(data)): _entries(path) for path in paths}


def _entries(path: Path) -> list[bytes]:
    size, data = ENTRY_BYTES[path.suffix], path.read_bytes()
    assert len(data) % size == 0, f"{path}: {len(data)} bytes"
    return [data[start : start + size] for start in range(0, len(data), size)]


def reopened(data: Path, topic: str, interval: int, *, without_indexes: bool = False) -> Indexes:
    """Return the indexes of a copy whose logs were opened, recovered as needed, and closed.

    ``without_indexes``: remove the index files first, so that every batch is read and both indexes
    are rebuilt.
    """
    left_out = ["*.index", "*.timeindex"] if without_indexes else []
    copy = data.with_name("reopened")
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns(".lock", *left_out))
    for partition in sorted(copy.glob(f"{topic}-*")):
        Log.open(
            partition, durability="os", config=LogConfig(index_interval_bytes=interval)
        ).close()
    indexes = stored(copy, topic)
    shutil.rmtree(copy)
    return indexes
