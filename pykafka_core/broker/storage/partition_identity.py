"""``partition.metadata``: the topic of a directory, and in our files also the partition."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pykafka_core._core import read_partition_metadata
from pykafka_core.broker.storage.files import read_file, storage_errors
from pykafka_core.errors import StorageError

PARTITION_METADATA = "partition.metadata"
_SIZE_MAX = 4096


class PartitionIdentity(NamedTuple):
    """Contents of a file; ``partition`` is None in a file of Apache Kafka."""

    topic_id: bytes
    partition: int | None


def read_identity(directory: Path) -> PartitionIdentity | None:
    """Return the identity of a partition's directory, None if its file is missing or damaged.

    Raises:
        StorageError: The file cannot be read.
    """
    data = read_file(directory / PARTITION_METADATA, _SIZE_MAX) or b""
    found = read_partition_metadata(data)
    return None if found is None else PartitionIdentity(*found)


def is_partition(directory: Path) -> bool:
    """Return whether a directory with the name of a partition has the files of a log; an unreadable
    directory may have them.
    """
    with suppress(StorageError), storage_errors("read", directory):
        return any(
            file.suffix == ".log" or file.name == PARTITION_METADATA for file in directory.iterdir()
        )
    return True


def other_partition(directory: Path) -> int | None:
    """Return the partition to which the files of a directory belong; None if it is its own or
    unknown.

    Raises:
        StorageError: The file cannot be read.
    """
    identity = read_identity(directory)
    found = None if identity is None else identity.partition
    return None if found is None or directory.name.endswith(f"-{found}") else found
