"""The placement of replicas: checks of manual assignments, and automatic ones."""

from collections.abc import Sequence
from typing import TypeVar

from pykafka_core.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError
from pykafka_core.metadata.directories import directory_of
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import PartitionRecord

T = TypeVar("T")

NO_BROKER = "All brokers are currently fenced, or have all their log directories cordoned."


def check_assignment(
    image: MetadataImage, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Refuse an invalid manual assignment of one partition.

    Args:
        image: The metadata with the brokers.
        replicas: Broker ids, the preferred leader first.
        replication_factor: The factor of the partitions before it; None for the first.

    Raises:
        InvalidReplicaAssignmentError: Wrong count, or empty, repeated, unknown or cordoned brokers.
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
        if image.brokers[broker].is_cordoned:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {broker}, "
                "but all its log directories are cordoned."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignmentError(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


class Placer:
    """Chooses replicas, spread over racks first, then over brokers.

    ``StripedReplicaPlacer`` in Kafka. Partitions rotate through the racks with an alive broker, and
    through the brokers of each rack, so that leaders are spread. The followers shift with each
    round, so that the partitions of a failed broker go to many others. A fenced broker is chosen if
    its rack has no other, and never leads; a broker that has shut down is fenced. A broker that is
    shutting down or is cordoned is never chosen.

    In contrast to Kafka's placer it uses no random numbers: a number determines the start of a
    partition, and the topic's id gives the first number.

    Args:
        image: The metadata with the brokers.
    """

    def __init__(self, image: MetadataImage) -> None:
        racks: dict[str, tuple[list[int], list[int]]] = {}
        for node, broker in sorted(image.brokers.items()):
            if (broker.fenced or broker.is_active) and not broker.is_cordoned:
                racks.setdefault(broker.rack or "", ([], []))[broker.fenced].append(node)
        self._racks = [racks[name] for name in sorted(racks)]
        self._leading = [place for place, (alive, _) in enumerate(self._racks) if alive]
        self.broker_count = sum(len(alive) + len(fenced) for alive, fenced in self._racks)
        """The number of brokers that may have a replica."""
        self._sizes = [len(self._racks[place][0]) for place in self._leading]
        self._only = tuple(node for rack in self._racks for nodes in rack for node in nodes)

    def check(self, factor: int) -> None:
        """Refuse a replication factor that is larger than the number of brokers.

        Raises:
            InvalidReplicationFactorError: There are too few brokers; the text has their number.
        """
        what = f"Unable to replicate the partition {factor} time(s): "
        if not self._leading:
            raise InvalidReplicationFactorError(what + NO_BROKER)
        if factor > self.broker_count:
            raise InvalidReplicationFactorError(
                f"{what}The target replication factor of {factor} cannot be reached because "
                f"only {self.broker_count} broker(s) are registered."
            )

    def replicas(self, topic_id: bytes, index: int, factor: int) -> tuple[int, ...]:
        """Return the replicas of one partition, the preferred leader first.

        ``factor`` must have passed `check`.
        """
        if self.broker_count == 1:
            return self._only
        number = int.from_bytes(topic_id[-4:], "big") + index
        turn, place = divmod(number, len(self._leading))
        racks = _rotated(self._racks, self._leading[place], turn // self._sizes[place])
        orders = [_order(rack, turn, distance) for distance, rack in enumerate(racks)]
        chosen: list[int] = []
        for depth in range(factor):
            chosen += [order[depth] for order in orders if depth < len(order)]
            if len(chosen) >= factor:
                break
        return tuple(chosen[:factor])


def _order(rack: tuple[list[int], list[int]], turn: int, distance: int) -> list[int]:
    """Return the brokers of a rack in the order of their choice, alive ones first."""
    return [
        node
        for nodes in rack
        if nodes
        for node in _in_turn(nodes, turn + distance * (turn // len(nodes)))
    ]


def _in_turn(nodes: list[int], turn: int) -> list[int]:
    """Return the nodes: each turn another one is first, each round the others are reordered."""
    rounds, first = divmod(turn, len(nodes))
    return _rotated(nodes, first, rounds)


def _rotated(items: list[T], first: int, shift: int) -> list[T]:
    """Return the item at ``first``, then the others from the one ``shift`` places after it."""
    rest = items[first + 1 :] + items[:first]
    start = shift % len(rest) if rest else 0
    return [items[first], *rest[start:], *rest[:start]]


class NewPartitions:
    """Creates the first records of partitions; common data of replicas is looked up once.

    Args:
        image: The metadata with the brokers.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._brokers = image.brokers
        self._known: dict[tuple[int, ...], tuple[list[int], list[int], list[bytes]]] = {}

    def record(self, topic_id: bytes, index: int, replicas: tuple[int, ...]) -> PartitionRecord:
        """Return the record of one partition, with the first alive replica as leader.

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
