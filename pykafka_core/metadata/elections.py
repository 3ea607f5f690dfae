"""Elections that no change of brokers makes: at the start of a lone broker, asked for, and of preferred leaders."""

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
"""Of one pass over all partitions, as Kafka's ``MAX_ELECTIONS_PER_IMBALANCE``: the next pass makes the others."""


def elections(image: MetadataImage, node_id: int, *, clean: bool) -> list[Message]:
    """Records that make ``node_id`` lead each partition it may lead.

    Args:
        image: Loaded from the log.
        node_id: The only broker that is alive.
        clean: It stopped cleanly. If not, records at the end of its logs may be lost and
            their offsets given out again, so even a partition it led gets a new leader epoch:
            that is how consumers notice (KIP-320).
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
    """The record of an election that somebody asks for; None when it makes nobody a leader."""
    partition = topic.partitions[index]
    found = changed(partition, partition, rules.asked(topic, election))
    if found.leader in (partition.leader, NO_LEADER):
        return None
    return record(topic.topic_id, index, partition, found)


def preferred(
    image: MetadataImage, rules: PartitionRules, limit: int = ELECTIONS_MAX
) -> Iterator[PartitionChangeRecord | None]:
    """Make the first replica lead where it may and another one does, at most ``limit`` times.

    ``ReplicationControlManager.maybeBalancePartitionLeaders`` in Kafka.

    Yields:
        A record, or None for a partition that needs none, so that the work can be done in slices.
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
    """Elect where nobody leads and somebody may, uncleanly only where the topic's settings allow it; as `preferred`.

    ``ReplicationControlManager.maybeElectUncleanLeaders`` in Kafka. It makes up for settings that changed, and for
    elections that were too many for the request that let a broker lead.
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
    """A broker that is alive, whose registration is not committed yet; each of its directories is taken for online."""
    return Broker(node_id, -1, b"", (), None, False, False, (), {})


def _led(partition: Partition, node_id: int, rules: Rules, *, clean: bool) -> Partition:
    """The partition with nobody in sync but this broker, or as it is when the broker may not lead it."""
    isr = (node_id,) if node_id in partition.isr else ()
    found = changed(partition, partition._replace(isr=isr), rules)
    if found.leader != node_id or (clean and partition.leader == node_id):
        return partition
    if found.leader_epoch == partition.leader_epoch:
        epoch = partition.leader_epoch + 1
        found = found._replace(leader_epoch=epoch, partition_epoch=partition.partition_epoch + 1)
    return found
