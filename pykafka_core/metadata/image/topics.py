"""Topic and partition records: their effects on an image."""

import re
from typing import TYPE_CHECKING

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import Partition, Topic
from pykafka_core.types import RESOURCE_TOPIC, ConfigResource

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import (
        ClearElrRecord,
        PartitionChangeRecord,
        PartitionRecord,
        RemoveTopicRecord,
        TopicRecord,
    )

LEADER_UNCHANGED = -2
RECOVERY_UNCHANGED = -1

NAME_LENGTH_MAX = 249
"""The directory name ``name-partition`` with its suffixes must be a valid file name."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]*")


def topic_name_problem(name: str) -> str | None:
    """Return the rule of Kafka that a topic name violates; names are used for directories."""
    if not name:
        return "it must not be empty"
    if name in (".", ".."):
        return "'.' and '..' are not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"it has {len(name)} characters, at most {NAME_LENGTH_MAX} are allowed"
    if not _LEGAL.fullmatch(name):
        return f"{name!r} holds characters other than ASCII letters, digits, '.', '_' and '-'"
    return None


def apply_topic(draft: Draft, record: "TopicRecord") -> None:
    """Create a topic without partitions."""
    problem = topic_name_problem(record.name)
    if problem is not None:
        raise MetadataError(f"TopicRecord has a name that Kafka does not allow: {problem}")
    topics = draft.own_topics()
    old = topics.by_name.get(record.name)
    if old is not None or record.topic_id in topics.by_id:
        raise MetadataError(f"TopicRecord makes topic {record.name!r} a second time")
    draft.begin_topic(Topic(record.name, record.topic_id, {}))


def apply_partition(draft: Draft, record: "PartitionRecord") -> None:
    """Create a partition, or replace it (in snapshots)."""
    topic = draft.own_topic(record.topic_id, "PartitionRecord", record.partition_id)
    if record.partition_id < 0:
        raise MetadataError(f"PartitionRecord names {topic.name}-{record.partition_id}")
    # Positional arguments take half the time: this runs for every partition at start and creation.
    partition = Partition(
        tuple(record.replicas),
        tuple(record.isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        record.leader_recovery_state == 1,
        tuple(record.directories),
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
    )
    topic.partitions[record.partition_id] = draft.partitions.setdefault(partition, partition)


def apply_partition_change(draft: Draft, record: "PartitionChangeRecord") -> None:
    """Replace the fields that are not null; any leader in the record, even the same, is elected."""
    topic = draft.own_topic(record.topic_id, "PartitionChangeRecord", record.partition_id)
    old = topic.partitions.get(record.partition_id)
    if old is None:
        raise MetadataError(
            f"PartitionChangeRecord names {topic.name}-{record.partition_id}, which does not exist"
        )
    elected = record.leader != LEADER_UNCHANGED
    recovery = record.leader_recovery_state
    topic.partitions[record.partition_id] = Partition(
        replicas=_or(record.replicas, old.replicas),
        isr=_or(record.isr, old.isr),
        leader=record.leader if elected else old.leader,
        leader_epoch=old.leader_epoch + 1 if elected else old.leader_epoch,
        partition_epoch=old.partition_epoch + 1,
        removing=_or(record.removing_replicas, old.removing),
        adding=_or(record.adding_replicas, old.adding),
        recovering=old.recovering if recovery == RECOVERY_UNCHANGED else recovery == 1,
        directories=(old.directories if record.directories is None else tuple(record.directories)),
        elr=_or(record.eligible_leader_replicas, old.elr),
        last_known_elr=_or(record.last_known_elr, old.last_known_elr),
    )


def apply_clear_elr(draft: Draft, record: "ClearElrRecord") -> None:
    """Clear the ELR of one topic, or of all without a name; this changes each partition."""
    by_name = draft.own_topics().by_name
    if record.topic_name and record.topic_name not in by_name:
        raise MetadataError(
            f"ClearElrRecord names topic {record.topic_name!r}, which does not exist"
        )
    for found in [by_name[record.topic_name]] if record.topic_name else list(by_name.values()):
        for index, partition in list(found.partitions.items()):
            if partition.elr or partition.last_known_elr:
                topic = draft.own_topic(found.topic_id, "ClearElrRecord", index)
                topic.partitions[index] = partition._replace(
                    elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                )


def apply_remove_topic(draft: Draft, record: "RemoveTopicRecord") -> None:
    """Delete a topic and its settings."""
    topic = draft.end_topic(record.topic_id, "RemoveTopicRecord")
    draft.forget_config(ConfigResource(RESOURCE_TOPIC, topic.name))


def _or(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)
