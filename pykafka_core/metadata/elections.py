"""Who leads once the only broker has (re)started."""

from pykafka_core.metadata.image.image import MetadataImage, Partition
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
