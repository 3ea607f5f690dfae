"""``partition.metadata``: the topic of a directory, and in our files also the partition."""

import re
from pathlib import Path
from typing import NamedTuple

from pykafka_core.broker.storage.files import read_file
from pykafka_core.types import id_bytes

PARTITION_METADATA = "partition.metadata"
_SIZE_MAX = 4096
_LINES = re.compile(
    rb"version: 0\r?\ntopic_id: (?P<topic>[A-Za-z0-9_-]{22})(?:\r?\npartition: (?P<partition>[0-9]{1,10}))?"
)


class PartitionIdentity(NamedTuple):
    """Contents of a file; ``partition`` is None in a file of Apache Kafka."""

    topic_id: bytes
    partition: int | None


def read_identity(directory: Path) -> PartitionIdentity | None:
    """Return the identity of a partition's directory, None if its file is missing or damaged.

    Raises:
        StorageError: The file cannot be read.
    """
    found = _LINES.match(read_file(directory / PARTITION_METADATA, _SIZE_MAX) or b"")
    if found is None:
        return None
    partition = found["partition"]
    topic_id = id_bytes(found["topic"].decode())
    return PartitionIdentity(topic_id, None if partition is None else int(partition))


def other_partition(directory: Path) -> int | None:
    """Return the partition whose files a directory has, None if they are its own or do not say.

    Raises:
        StorageError: The file cannot be read.
    """
    identity = read_identity(directory)
    found = None if identity is None else identity.partition
    return None if found is None or directory.name.endswith(f"-{found}") else found
