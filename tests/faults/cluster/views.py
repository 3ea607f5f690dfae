"""A node's own view of partitions, by raw requests; a client library would choose the node."""

from collections.abc import Iterable
from typing import NamedTuple

from pykafka_core.protocol import messages as m
from tests.support.wire import Connection

METADATA, VERSION = 3, 12


class Partition(NamedTuple):
    """A partition in one node's metadata; ``leader`` is -1 without a leader."""

    name: str
    leader: int
    epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


def partitions(address: str, topics: Iterable[str] | None) -> list[Partition]:
    """Return the partitions of topics (None: all), sorted, without those unknown to the node.

    Raises:
        OSError: The node does not respond.
    """
    of = m.MetadataRequest.MetadataRequestTopic
    wanted = None if topics is None else [of(name=name) for name in topics]
    with Connection(address) as connection:
        response = connection.ask(METADATA, VERSION, m.MetadataRequest(topics=wanted))
    return sorted(
        Partition(
            f"{topic.name}-{row.partition_index}",
            row.leader_id,
            row.leader_epoch,
            tuple(sorted(row.isr_nodes)),
            tuple(sorted(row.replica_nodes)),
        )
        for topic in response.topics
        for row in topic.partitions
    )
