"""Checks whether the metadata contains any of the partitions in a data directory.

A start renames the directory of a partition that the metadata does not contain to ``-stray``. That
is correct if the topic was deleted while its directory could not be renamed. If the metadata
contains none of the partitions, and its log never did, it was lost or belongs to another cluster:
the start is refused, whichever program wrote the directory.

A log whose first part was replaced by a snapshot does not show topics that were deleted before: a
node that was offline for long receives such a log. Then the partitions are strays if the metadata
has registered its data directory. New metadata, after a loss or of another cluster, has not
registered it.
"""

from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY, DataDirectory
from pykafka_core.broker.storage.partition_identity import is_partition, read_identity
from pykafka_core.errors import CorruptMessageError, MetadataError, StorageError
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.records.codec import Decoded
from pykafka_core.protocol.messages import RemoveTopicRecord, TopicRecord


class Lost(NamedTuple):
    """The problem, and how to proceed."""

    text: str
    advice: str


class _Topic(NamedTuple):
    """The topic of a directory; ``topic_id`` is None if its file is missing or unreadable."""

    name: str
    topic_id: bytes | None

    def is_among(self, ids: Container[bytes], names: Container[str]) -> bool:
        return self.name in names if self.topic_id is None else self.topic_id in ids


class MetadataLog(NamedTuple):
    """The stored metadata log.

    Attributes:
        start_offset: 0 unless a snapshot has replaced its first part.
        batches: Its records from there on; read only if they are needed.
    """

    start_offset: int
    batches: Iterable[Decoded]


def find_lost(directory: DataDirectory, image: MetadataImage, log: MetadataLog) -> Lost | None:
    """Return the problem of a directory if the metadata contains none of its partitions.

    Args:
        directory: The data directory.
        image: The complete metadata.
        log: The log of the image.

    Raises:
        StorageError: The data directory cannot be read. A partition that cannot be read is compared
            by its name.
    """
    names, topics = [], []
    for name in directory.partitions():
        if (topic := _topic_of(directory.path / name)) is None:
            continue
        if topic.is_among(image.topics.by_id, image.topics.by_name):
            return None
        names.append(name)
        topics.append(topic)
    if not names:
        return None
    if log.start_offset > 0 and _is_registered(directory, image):
        return None
    ids, known_names = _ever_contained(log.batches)
    if any(topic.is_among(ids, known_names) for topic in topics):
        return None
    return Lost(
        f"{directory.path} holds {len(names):,} partitions, such as {names[0]}, and the metadata contains none of "
        "their topics",
        f"restore the files of {METADATA_DIRECTORY}, of a cluster those of its controllers; or, to begin without these "
        f"partitions, move their directories out of {directory.path}",
    )


def _topic_of(path: Path) -> _Topic | None:
    """Return None for a directory without a log; an unreadable directory may have one."""
    if not is_partition(path):
        return None
    identity = None
    with suppress(StorageError):
        identity = read_identity(path)
    topic_id = None if identity is None else identity.topic_id
    return _Topic(path.name.rpartition("-")[0], topic_id)


def _is_registered(directory: DataDirectory, image: MetadataImage) -> bool:
    """Return whether a broker with this directory is registered in the metadata.

    Registrations before metadata.version 3.7-IV2 have no directories: then the node id is compared.
    """
    identity = directory.stored_identity()
    broker = None if identity is None else image.brokers.get(identity.node_id)
    if identity is None or broker is None:
        return False
    return not broker.directories or identity.directory_id in broker.directories


def _ever_contained(log: Iterable[Decoded]) -> tuple[set[bytes], set[str]]:
    """Return ids and names of the log's topics, including deleted ones, up to the first unreadable
    record.
    """
    ids, names = set(), set()
    with suppress(MetadataError, CorruptMessageError):
        for _, record in (pair for batches in log for pair in batches.records):
            if isinstance(record, TopicRecord | RemoveTopicRecord):
                ids.add(record.topic_id)
            if isinstance(record, TopicRecord):
                names.add(record.name)
    return ids, names
