"""What a change of a partition's replicas does: KIP-455; ``PartitionReassignmentReplicas`` in Kafka.

A reassignment goes through a middle state: the replicas are the new ones and, behind them, those being removed.
It ends when every new replica is in the ISR; one that needs no replica to catch up ends in the record that begins it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pykafka_core.metadata.image.image import Broker, Partition
from pykafka_core.protocol.messages import PartitionChangeRecord

UNASSIGNED_DIRECTORY = bytes(16)
"""``DirectoryId.UNASSIGNED``: the broker has not said which log directory it uses."""


class Assignment(NamedTuple):
    """Who holds a partition, and who is to.

    Attributes:
        removing: Of ``replicas``, those that leave.
        adding: Of ``replicas``, those that join.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()


def in_progress(partition: Partition) -> bool:
    """Replicas of the partition leave or join."""
    return bool(partition.removing or partition.adding)


def assigned(partition: Partition, target: Sequence[int]) -> Assignment:
    """The assignment to ``target``, as far as it can be made at once."""
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    isr = _without(partition.isr, removing)
    if isr and set(target) <= set(isr):
        return Assignment(tuple(target), isr)
    if not removing and not adding:
        return Assignment(tuple(target), partition.isr, partition.removing, partition.adding)
    return Assignment((*target, *removing), partition.isr, removing, adding)


def reverted(partition: Partition) -> Assignment:
    """The assignment before the one in progress.

    ``isr`` is empty when only replicas that were joining are in sync: going back would be an unclean election.
    """
    replicas = _without(partition.replicas, partition.adding)
    return Assignment(replicas, _without(partition.isr, partition.adding))


def change_record(
    topic_id: bytes,
    index: int,
    partition: Partition,
    wanted: Assignment,
    brokers: Mapping[int, Broker],
) -> PartitionChangeRecord | None:
    """The record that makes it so, or None when it is so already.

    If the leader is no replica any longer, another one that is in sync and alive leads.
    """
    if wanted == Assignment(
        partition.replicas, partition.isr, partition.removing, partition.adding
    ):
        return None
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=index)
    if wanted.replicas != partition.replicas:
        record.replicas = list(wanted.replicas)
        record.directories = _directories(partition, wanted.replicas, brokers)
    if wanted.isr != partition.isr:
        record.isr = list(wanted.isr)
    if wanted.removing != partition.removing:
        record.removing_replicas = list(wanted.removing)
    if wanted.adding != partition.adding:
        record.adding_replicas = list(wanted.adding)
    if partition.leader not in wanted.isr:
        record.leader = _leader(wanted, brokers)
    elif set(partition.replicas) - set(wanted.replicas):
        # A new epoch: what left must not follow this leader any longer.
        record.leader = partition.leader
    return record


def _without(nodes: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(node for node in nodes if node not in gone)


def _leader(wanted: Assignment, brokers: Mapping[int, Broker]) -> int:
    for node in wanted.replicas:
        if node in wanted.isr and node in brokers and not brokers[node].fenced:
            return node
    return -1


def _directories(
    partition: Partition, replicas: Sequence[int], brokers: Mapping[int, Broker]
) -> list[bytes]:
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return [known.get(node) or directory_of(brokers.get(node)) for node in replicas]


def directory_of(broker: Broker | None) -> bytes:
    """The log directory of a broker's new replicas, if it has but one."""
    if broker is None or len(broker.directories) != 1:
        return UNASSIGNED_DIRECTORY
    return broker.directories[0]
