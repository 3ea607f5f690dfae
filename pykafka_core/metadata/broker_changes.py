"""Partition changes when a broker is fenced, stops, restarts or is unregistered.

``ReplicationControlManager.generateLeaderAndIsrUpdates`` in Kafka. There is no index of partitions
by broker: these events are rare, and an unaffected partition costs a thirtieth of a changed one.
The functions yield a record, or None for an unaffected partition, so that the work can be done in
slices.
"""

from collections.abc import Collection, Generator, Iterator, Mapping

from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.image.image import NO_LEADER, Broker, MetadataImage, Partition
from pykafka_core.metadata.partition_change import change_record
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.metadata.reassignments import without
from pykafka_core.protocol.messages import PartitionChangeRecord

Changes = Iterator[PartitionChangeRecord | None]


def fenced(image: MetadataImage, settings: BrokerConfigs, broker: Broker) -> Changes:
    """Remove a fenced broker from leadership and all ISRs: its session expired, or on request."""
    brokers = {**image.brokers, broker.node_id: broker._replace(fenced=True)}
    return _left(image, settings, brokers, broker.node_id)


def shutting_down(image: MetadataImage, settings: BrokerConfigs, broker: Broker) -> Changes:
    """Do the same as `fenced` for a broker in controlled shutdown, which is still alive."""
    brokers = {**image.brokers, broker.node_id: broker._replace(in_controlled_shutdown=True)}
    return _left(image, settings, brokers, broker.node_id)


def unregistered(image: MetadataImage, settings: BrokerConfigs, broker: Broker) -> Changes:
    """Yield the partition changes for a broker that was unregistered; see `fenced`."""
    brokers = {node: found for node, found in image.brokers.items() if node != broker.node_id}
    return _left(image, settings, brokers, broker.node_id)


def restarted(
    image: MetadataImage, settings: BrokerConfigs, node_id: int, *, clean: bool
) -> Changes:
    """Remove a restarted broker from all ISRs; it stays eligible only after a clean shutdown.

    Args:
        image: The image before the registration.
        settings: Settings that allow unclean elections.
        node_id: The broker's id, which need not be registered.
        clean: Whether the logs contain everything that the broker ever acknowledged.
    """
    brokers = dict(image.brokers)
    if node_id in brokers:
        brokers[node_id] = brokers[node_id]._replace(fenced=True)
    return _left(image, settings, brokers, node_id, () if clean else (node_id,))


def unfenced(image: MetadataImage, settings: BrokerConfigs, broker: Broker) -> Changes:
    """Elect leaders for leaderless partitions of a broker that is unfenced."""
    back = broker._replace(fenced=False)
    rules = PartitionRules(image, settings, {**image.brokers, broker.node_id: back})
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if partition.leader == NO_LEADER and broker.node_id in partition.replicas:
                yield change_record(topic.topic_id, index, partition, partition, rules.of(topic))
            else:
                yield None


def directories_lost(
    image: MetadataImage, settings: BrokerConfigs, broker: Broker, lost: Collection[bytes]
) -> Changes:
    """Remove a broker from the ISRs of partitions in log directories that failed (KIP-858)."""
    rest = tuple(directory for directory in broker.directories if directory not in lost)
    brokers = {**image.brokers, broker.node_id: broker._replace(directories=rest)}
    rules = PartitionRules(image, settings, brokers)
    node_id = broker.node_id
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            held = dict(zip(partition.replicas, partition.directories, strict=False))
            if held.get(node_id) in lost and _takes_part(partition, node_id):
                wanted = partition._replace(isr=without(partition.isr, (node_id,)))
                yield change_record(topic.topic_id, index, partition, wanted, rules.of(topic))
            else:
                yield None


def leads_any(image: MetadataImage, node_id: int) -> Generator[None, None, bool]:
    """Return whether a broker leads a partition; yield after each partition that is checked."""
    for topic in image.topics.by_id.values():
        for partition in topic.partitions.values():
            if partition.leader == node_id:
                return True
            yield
    return False


def _left(
    image: MetadataImage,
    settings: BrokerConfigs,
    brokers: Mapping[int, Broker],
    node_id: int,
    lost: Collection[int] = (),
) -> Changes:
    rules = PartitionRules(image, settings, brokers)
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if not _takes_part(partition, node_id) and not (lost and node_id in partition.elr):
                yield None
                continue
            wanted = partition._replace(isr=without(partition.isr, (node_id,)))
            yield change_record(topic.topic_id, index, partition, wanted, rules.of(topic), lost)


def _takes_part(partition: Partition, node_id: int) -> bool:
    return node_id in partition.isr or partition.leader == node_id
