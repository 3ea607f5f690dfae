"""Elections without a change of brokers: at a lone broker's start, on request, or periodic."""

from collections.abc import Iterator
from typing import Final

from pykafka_core.metadata.image.image import NO_LEADER, Broker, MetadataImage, Partition, Topic
from pykafka_core.metadata.partition_change import (
    Election,
    Rules,
    changed,
    may_lead,
    record,
)
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import Message, PartitionChangeRecord

ELECTIONS_MAX: Final = 1_000
"""Limit per pass, like Kafka's ``MAX_ELECTIONS_PER_IMBALANCE``; the next pass continues."""


def elections(image: MetadataImage, node_id: int, *, clean: bool) -> list[Message]:
    """Return records that make ``node_id`` the leader of each partition that it may lead.

    Args:
        image: Loaded from the log.
        node_id: The only live broker.
        clean: Whether it stopped cleanly. If not, records at the end of its logs may be lost and
            their offsets reused, so even a partition that it led gets a new leader epoch, by which
            consumers detect the loss (KIP-320).
    """
    rules = PartitionRules(image, brokers={node_id: _alone(node_id)})
    made = (
        record(
            topic.topic_id, index, partition, _led(partition, node_id, rules.of(topic), clean=clean)
        )
        for topic in image.topics.by_id.values()
        for index, partition in topic.partitions.items()
        if node_id in partition.replicas
    )
    return [found for found in made if found is not None]


def elected(
    topic: Topic, index: int, rules: PartitionRules, election: Election
) -> PartitionChangeRecord | None:
    """Return the record of a requested election; None if it does not change the leader."""
    partition = topic.partitions[index]
    found = changed(partition, partition, rules.asked(topic, election))
    if found.leader in (partition.leader, NO_LEADER):
        return None
    return record(topic.topic_id, index, partition, found)


def preferred(
    image: MetadataImage, rules: PartitionRules, limit: int = ELECTIONS_MAX
) -> Iterator[PartitionChangeRecord | None]:
    """Elect the preferred leader where it may lead but does not, at most ``limit`` times.

    ``ReplicationControlManager.maybeBalancePartitionLeaders`` in Kafka.

    Yields:
        A record, or None for an unaffected partition, so that the work can be done in slices.
    """
    for topic, index, partition in _partitions(image):
        first = partition.replicas[0]
        if partition.leader in (first, NO_LEADER) or first not in partition.isr:
            yield None
        elif may_lead(partition, first, rules.of(topic).brokers):
            made = elected(topic, index, rules, Election.PREFERRED)
            yield made
            limit -= made is not None
            if not limit:
                return


def leaderless(
    image: MetadataImage, rules: PartitionRules, limit: int = ELECTIONS_MAX
) -> Iterator[PartitionChangeRecord | None]:
    """Elect leaders of leaderless partitions where possible; yields like `preferred`.

    ``ReplicationControlManager.maybeElectUncleanLeaders`` in Kafka. Elections are unclean only if
    the topic's settings allow it. This handles changed settings, and elections that exceeded the
    limit of the request that unfenced a broker.
    """
    for topic, index, partition in _partitions(image):
        made = None
        if partition.leader == NO_LEADER:
            made = elected(topic, index, rules, rules.of(topic).election)
        yield made
        limit -= made is not None
        if not limit:
            return


def _partitions(image: MetadataImage) -> Iterator[tuple[Topic, int, Partition]]:
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            yield topic, index, partition


def _alone(node_id: int) -> Broker:
    """Return a live broker that is not registered yet; all its directories count as online."""
    return Broker(node_id, -1, b"", (), None, False, False, (), {})


def _led(partition: Partition, node_id: int, rules: Rules, *, clean: bool) -> Partition:
    """Return the partition with this broker as the only ISR, or unchanged if it may not lead it."""
    isr = (node_id,) if node_id in partition.isr else ()
    found = changed(partition, partition._replace(isr=isr), rules)
    if found.leader != node_id or (clean and partition.leader == node_id):
        return partition
    if found.leader_epoch == partition.leader_epoch:
        epoch = partition.leader_epoch + 1
        found = found._replace(leader_epoch=epoch, partition_epoch=partition.partition_epoch + 1)
    return found
