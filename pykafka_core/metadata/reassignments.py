"""What a change of a partition's replicas does: KIP-455; ``PartitionReassignmentReplicas`` in Kafka.

A reassignment goes through a middle state: the replicas are the new ones and, behind them, those being removed.
It ends when every new replica is in the ISR; one that needs no replica to catch up ends in the record that begins it.
The functions give the partition as it is wanted; `partition_change` says what comes of it.
"""

from collections.abc import Collection, Sequence

from pykafka_core.metadata.image.image import Partition


def in_progress(partition: Partition) -> bool:
    """Replicas of the partition leave or join."""
    return bool(partition.removing or partition.adding)


def assigned(partition: Partition, target: Sequence[int]) -> Partition:
    """The partition with the reassignment to ``target`` in progress.

    What an earlier one in progress was adding is added still, so that `reverted` does not leave it. What it was
    removing stays if ``target`` names it; Apache Kafka removes it all the same.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(without(partition.replicas, partition.adding))))
    return partition._replace(replicas=(*target, *removing), removing=removing, adding=adding)


def reverted(partition: Partition) -> Partition:
    """The partition as it was before the reassignment in progress; see `loses_records`."""
    return partition._replace(
        replicas=without(partition.replicas, partition.adding),
        isr=without(partition.isr, partition.adding),
        removing=(),
        adding=(),
    )


def loses_records(partition: Partition, wanted: Partition) -> bool:
    """Whether no replica stays that is in sync, or eligible where none is: the next election is unclean."""
    complete = partition.isr or partition.elr
    return bool(complete) and not set(complete) & set(wanted.replicas)


def completed(partition: Partition) -> Partition:
    """The partition after its reassignment, if every replica that stays is in the ISR (KAFKA-15665)."""
    if not in_progress(partition):
        return partition
    replicas = without(partition.replicas, partition.removing)
    isr = without(partition.isr, partition.removing)
    if not replicas or not set(replicas) <= set(isr):
        return partition
    return partition._replace(replicas=replicas, isr=isr, removing=(), adding=())


def without(nodes: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    """Those of ``nodes`` that are not gone, in order."""
    return tuple(node for node in nodes if node not in gone)
