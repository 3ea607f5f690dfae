"""Changes of a partition's replicas: KIP-455; ``PartitionReassignmentReplicas`` in Kafka.

During a reassignment, the replicas are the new ones followed by those being removed. It completes
when every new replica is in the ISR; if none must catch up, the record that starts it completes it.
The functions return the wanted partition; `partition_change` computes the result.
"""

from collections.abc import Collection, Sequence

from pykafka_core.metadata.image.image import Partition


def in_progress(partition: Partition) -> bool:
    """Return whether replicas of the partition are being removed or added."""
    return bool(partition.removing or partition.adding)


def assigned(partition: Partition, target: Sequence[int]) -> Partition:
    """Return the partition with a reassignment to ``target`` in progress.

    Replicas that an earlier reassignment was adding still count as added, so that `reverted`
    removes them. Replicas that it was removing stay if they are in ``target``; Apache Kafka removes
    them nevertheless.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(without(partition.replicas, partition.adding))))
    return partition._replace(replicas=(*target, *removing), removing=removing, adding=adding)


def reverted(partition: Partition) -> Partition:
    """Return the partition without the reassignment in progress; see `loses_records`."""
    return partition._replace(
        replicas=without(partition.replicas, partition.adding),
        isr=without(partition.isr, partition.adding),
        removing=(),
        adding=(),
    )


def loses_records(partition: Partition, wanted: Partition) -> bool:
    """Return whether all in-sync (if none: all eligible) replicas leave, so that data is lost."""
    complete = partition.isr or partition.elr
    return bool(complete) and not set(complete) & set(wanted.replicas)


def completed(partition: Partition) -> Partition:
    """Complete the reassignment if every remaining replica is in the ISR (KAFKA-15665)."""
    if not in_progress(partition):
        return partition
    replicas = without(partition.replicas, partition.removing)
    isr = without(partition.isr, partition.removing)
    if not replicas or not set(replicas) <= set(isr):
        return partition
    return partition._replace(replicas=replicas, isr=isr, removing=(), adding=())


def without(nodes: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    """Return ``nodes`` without those in ``gone``, in order."""
    return tuple(node for node in nodes if node not in gone)
