"""Partitions and brokers for tests of decisions."""

from collections.abc import Collection

from pykafka_core.metadata.image.image import Broker, Partition
from pykafka_core.metadata.partition_change import Election, Rules

TOPIC_ID = b"0123456789abcdef"


def directory(node_id: int) -> bytes:
    return (1000 + node_id).to_bytes(16, "big")


def broker(node_id: int, **changes: object) -> Broker:
    made = Broker(
        node_id, 100 + node_id, b"i" * 16, (), None, False, False, (directory(node_id),), {}
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def partition(replicas: Collection[int], **changes: object) -> Partition:
    """Return a partition whose first replica leads and whose replicas are in sync, except for
    ``changes``.
    """
    nodes = tuple(replicas)
    made = Partition(
        nodes, nodes, nodes[0], 4, 6, directories=tuple(directory(node) for node in nodes)
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def rules(
    alive: Collection[int],
    *,
    fenced: Collection[int] = (),
    stopping: Collection[int] = (),
    min_isr: int = 2,
    elr: bool = True,
    election: Election = Election.ONLINE,
) -> Rules:
    brokers = {node: broker(node) for node in alive}
    brokers |= {node: broker(node, fenced=True) for node in fenced}
    brokers |= {node: broker(node, in_controlled_shutdown=True) for node in stopping}
    return Rules(brokers, min_isr, elr, election)
