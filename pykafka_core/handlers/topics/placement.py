"""Where replicas go: checks of manual assignments, and the choice when there is none."""

from collections.abc import Sequence

from pykafka_core.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError
from pykafka_core.metadata.directories import directory_of
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import PartitionRecord


def check_assignment(
    image: MetadataImage, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Refuse a manual assignment of one partition that cannot be.

    Args:
        image: Knows the brokers.
        replicas: Broker ids, the preferred leader first.
        replication_factor: What the partitions before it had; None for the first.

    Raises:
        InvalidReplicaAssignmentError: Empty, repeated or unknown brokers, or another count.
    """
    if not replicas:
        raise InvalidReplicaAssignmentError(
            "The manual partition assignment includes an empty replica list."
        )
    for broker in sorted(replicas):
        if broker not in image.brokers:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {broker}, "
                "but no such broker is registered."
            )
        if replicas.count(broker) > 1:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignmentError(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def place(image: MetadataImage, first: int, count: int, factor: int) -> list[tuple[int, ...]]:
    """Choose replicas for partitions ``first`` … ``first + count - 1``, leaders going round.

    Raises:
        InvalidReplicationFactorError: ``factor`` is more than there are brokers.
    """
    nodes = sorted(image.brokers)
    if factor > len(nodes):
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {factor} time(s): The target replication factor "
            f"of {factor} cannot be reached because only {len(nodes)} broker(s) are registered."
        )
    chosen = [
        tuple(nodes[(leader + step) % len(nodes)] for step in range(factor))
        for leader in range(len(nodes))
    ]
    return [chosen[index % len(nodes)] for index in range(first, first + count)]


class NewPartitions:
    """Makes the records that begin partitions; what their replicas have in common is looked up once.

    Args:
        image: Knows the brokers.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._brokers = image.brokers
        self._known: dict[tuple[int, ...], tuple[list[int], list[int], list[bytes]]] = {}

    def record(self, topic_id: bytes, index: int, replicas: tuple[int, ...]) -> PartitionRecord:
        """The record of one partition: led by the first replica that is alive.

        Raises:
            InvalidReplicaAssignmentError: None of the replicas is alive.
        """
        known = self._known.get(replicas)
        if known is None:
            known = self._known[replicas] = self._look_up(replicas)
        nodes, alive, directories = known
        if not alive:
            raise InvalidReplicaAssignmentError(
                f"All brokers specified in the manual partition assignment for partition {index} "
                "are fenced or in controlled shutdown."
            )
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=nodes,
            isr=alive,
            leader=alive[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=directories,
        )

    def _look_up(self, replicas: tuple[int, ...]) -> tuple[list[int], list[int], list[bytes]]:
        alive = [node for node in replicas if self._brokers[node].is_active]
        directories = [directory_of(self._brokers[node]) for node in replicas]
        return list(replicas), alive, directories
