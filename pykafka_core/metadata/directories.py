"""Log directories of replicas: reserved ids, and online state; ``DirectoryId`` in Kafka."""

from typing import Final

from pykafka_core.metadata.image.image import Broker, Partition

MIGRATING: Final = bytes(16)
"""The replica has a directory, which the broker has not reported yet."""
UNASSIGNED: Final = bytes(15) + b"\x01"
"""The broker chooses the directory."""
LOST: Final = bytes(15) + b"\x02"
"""The directory is offline."""

RESERVED_COUNT: Final = 100
"""Kafka reserves the ids below this number."""


def is_reserved(directory_id: bytes) -> bool:
    """Return whether the id is reserved, so that no directory can have it."""
    return int.from_bytes(directory_id, "big") < RESERVED_COUNT


def directory_of(broker: Broker | None) -> bytes:
    """Return the log directory for a broker's new replicas, if it is known."""
    if broker is None or len(broker.directories) > 1:
        return UNASSIGNED
    return broker.directories[0] if broker.directories else MIGRATING


def is_online(broker: Broker, directory_id: bytes) -> bool:
    """Return whether a replica in this directory of a broker can be read and written.

    A broker without registered directories has one directory and stops if it fails (KAFKA-16162).
    """
    if directory_id in (MIGRATING, UNASSIGNED):
        return True
    if directory_id == LOST:
        return False
    return not broker.directories or directory_id in broker.directories


def directories_of(partition: Partition) -> tuple[bytes, ...]:
    """Return the directories of the replicas; unknown if the partition is older than KIP-858."""
    return partition.directories or (MIGRATING,) * len(partition.replicas)


def lost_by(partition: Partition) -> tuple[int, ...]:
    """Return the brokers whose replicas are in a lost directory."""
    if LOST not in partition.directories:
        return ()
    held = zip(partition.replicas, partition.directories, strict=True)
    return tuple(node for node, found in held if found == LOST)
