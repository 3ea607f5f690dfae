"""Who leads once the only broker has (re)started."""

from pykafka_core.metadata.image.image import NO_LEADER, MetadataImage, Partition
from pykafka_core.protocol.messages import Message, PartitionChangeRecord

RECOVERING = 1


def elections(image: MetadataImage, node_id: int, *, clean: bool) -> list[Message]:
    """Records that make ``node_id`` lead each partition it may lead.

    Args:
        image: Loaded from the log.
        node_id: The only broker that is alive.
        clean: It stopped cleanly. If not, records at the end of its logs may be lost and
            their offsets given out again, so even a partition it led gets a new leader epoch:
            that is how consumers notice (KIP-320).
    """
    return [
        _elect(topic.topic_id, index, partition, node_id)
        for topic in image.topics.by_id.values()
        for index, partition in topic.partitions.items()
        if _may_lead(partition, node_id) and (partition.leader != node_id or not clean)
    ]


def _may_lead(partition: Partition, node_id: int) -> bool:
    """In the ISR or eligible; or the last that was, which is an unclean election."""
    return node_id in partition.replicas and (
        node_id in partition.isr
        or node_id in partition.elr
        or (not partition.isr and node_id in partition.last_known_elr)
    )


def _elect(topic_id: bytes, index: int, partition: Partition, node_id: int) -> Message:
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=node_id)
    if partition.isr != (node_id,):
        record.isr = [node_id]
    if node_id in partition.elr:
        record.eligible_leader_replicas = [node for node in partition.elr if node != node_id]
    elif node_id not in partition.isr:
        record.leader_recovery_state = RECOVERING
    if partition.last_known_elr:
        record.last_known_elr = []
    return record


def preferred(image: MetadataImage, topic_id: bytes, index: int) -> Message | None:
    """The record that makes a partition's first replica lead, or another one in sync if nobody leads.

    None when the leader cannot be another one than it is.
    """
    partition = image.topics.by_id[topic_id].partitions[index]
    candidates = (partition.replicas[0], partition.leader, *partition.replicas)
    alive = [node for node in candidates if node in partition.isr and _is_alive(image, node)]
    if not alive or alive[0] == partition.leader:
        return None
    return PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=alive[0])


def unclean(image: MetadataImage, topic_id: bytes, index: int) -> Message | None:
    """The record that makes a living replica lead a partition that nobody leads; None when none is alive.

    Records may be lost unless one of them is in sync.
    """
    partition = image.topics.by_id[topic_id].partitions[index]
    alive = [node for node in partition.replicas if _is_alive(image, node)]
    clean = [node for node in alive if node in partition.isr]
    if clean:
        return PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=clean[0])
    alive.sort(key=lambda node: node not in partition.elr)
    return _elect(topic_id, index, partition, alive[0]) if alive else None


def left(image: MetadataImage, topic_id: bytes, index: int, node_id: int) -> Message | None:
    """The record that takes a broker that is gone out of the ISR and the lead; None if it has neither.

    The last replica in sync stays in the ISR: only it has all records.
    """
    partition = image.topics.by_id[topic_id].partitions[index]
    isr = [node for node in partition.isr if node != node_id]
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=index)
    if isr and len(isr) < len(partition.isr):
        record.isr = isr
    if partition.leader == node_id:
        alive = (node for node in partition.replicas if node in isr and _is_alive(image, node))
        record.leader = next(alive, NO_LEADER)
    elif record.isr is None:
        return None
    return record


def _is_alive(image: MetadataImage, node_id: int) -> bool:
    broker = image.brokers.get(node_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown
