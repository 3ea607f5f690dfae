"""Log directories of replicas: ids with a meaning of their own, and who is online; ``DirectoryId`` in Kafka."""

from typing import Final

from pykafka_core.metadata.image.image import Broker, Partition

MIGRATING: Final = bytes(16)
"""The replica has a directory, and the broker has not yet said which."""
UNASSIGNED: Final = bytes(15) + b"\x01"
"""The broker chooses one."""
LOST: Final = bytes(15) + b"\x02"
"""One that is offline."""

RESERVED_COUNT: Final = 100
"""Ids below this are Kafka's own."""


def is_reserved(directory_id: bytes) -> bool:
    """Whether no directory may have this id."""
    return int.from_bytes(directory_id, "big") < RESERVED_COUNT


def directory_of(broker: Broker | None) -> bytes:
    """The log directory of a broker's new replicas, if that is known."""
    if broker is None or len(broker.directories) > 1:
        return UNASSIGNED
    return broker.directories[0] if broker.directories else MIGRATING


def is_online(broker: Broker, directory_id: bytes) -> bool:
    """Whether a replica in this directory of a broker can be read and written.

    A broker that registered no directories has a single one, and stops when that fails (KAFKA-16162).
    """
    if directory_id in (MIGRATING, UNASSIGNED):
        return True
    if directory_id == LOST:
        return False
    return not broker.directories or directory_id in broker.directories


def directories_of(partition: Partition) -> tuple[bytes, ...]:
    """Directories of the replicas; unknown in a partition older than such assignments."""
    return partition.directories or (MIGRATING,) * len(partition.replicas)


def lost_by(partition: Partition) -> tuple[int, ...]:
    """Brokers whose replicas are in a lost directory."""
    if LOST not in partition.directories:
        return ()
    held = zip(partition.replicas, partition.directories, strict=True)
    return tuple(node for node, found in held if found == LOST)
