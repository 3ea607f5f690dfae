"""Stored offsets: OffsetCommitKey and OffsetCommitValue."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from sys import intern
from typing import cast

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.offsets.table import NO_EXPIRY, Committed, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    decode_record_key,
    decode_record_value,
    encode_record_key,
    encode_record_value,
)
from pykafka_core.protocol.messages import OffsetCommitKey, OffsetCommitValue

VALUE_VERSION = 4
EXPIRING_VALUE_VERSION = 1
"""The only version with an expiry time."""
_PARTITION_BYTES = 4


def replay_offset(state: GroupState, producer_id: int, key: bytes, value: bytes | None) -> None:
    """Apply a stored offset or its tombstone; an offset of a transaction waits for the marker.

    Raises:
        ProtocolError: The bytes are not such a record.
    """
    prefix = _prefix(key[:-_PARTITION_BYTES])
    if prefix is None:
        group_id, topic, partition = _decode_key(key)
    else:
        group_id, topic = prefix
        partition = int.from_bytes(key[-_PARTITION_BYTES:], "big", signed=True)
    if value is None:
        state.offsets.remove(group_id, topic, partition)
        return
    stored = cast("OffsetCommitValue", decode_record_value("OffsetCommitValue", value))
    state.offsets.note_replayed(topic, stored.topic_id)
    ensure_group(state, group_id)
    committed = Committed(
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.commit_timestamp,
        stored.expire_timestamp,
        stored.topic_id,
    )
    if producer_id < 0:
        state.offsets.put(group_id, topic, partition, committed)
    else:
        state.offsets.put_pending(producer_id, group_id, (topic, partition), committed)


def replay_marker(state: GroupState, producer_id: int, *, committed: bool) -> None:
    """Apply the end of a transaction."""
    state.offsets.end_transaction(producer_id, committed=committed)


def ensure_group(state: GroupState, group_id: str) -> None:
    """Create a simple group for the offsets if no group has this id."""
    if group_id not in state.groups and group_id not in state.consumer_groups:
        state.groups[group_id] = ClassicGroup(group_id)


class OffsetRecords:
    """Creates the records of one group's offsets in one topic; their common parts are encoded
    once.
    """

    __slots__ = "_key", "_value"

    def __init__(self, group_id: str, topic: str) -> None:
        # The partition is the last field.
        self._key = _key(group_id, topic, 0)[:-_PARTITION_BYTES]
        self._value = OffsetCommitValue()

    def of(self, partition: int, committed: Committed) -> KeyValue:
        """Return the record of an offset."""
        value = self._value
        value.offset = committed.offset
        value.leader_epoch = committed.leader_epoch
        value.metadata = committed.metadata
        value.commit_timestamp = committed.commit_timestamp_ms
        value.expire_timestamp = committed.expire_timestamp_ms
        value.topic_id = committed.topic_id
        expires = committed.expire_timestamp_ms != NO_EXPIRY
        version = EXPIRING_VALUE_VERSION if expires else VALUE_VERSION
        return self.key(partition), encode_record_value(value, version)

    def key(self, partition: int) -> bytes:
        """Return the record key of a partition."""
        return self._key + partition.to_bytes(_PARTITION_BYTES, "big", signed=True)


def offset_tombstones(group_id: str, places: Iterable[TopicPartition]) -> Iterator[KeyValue]:
    """Yield the tombstones of offsets."""
    by_topic: dict[str, OffsetRecords] = {}
    for topic, partition in places:
        records = by_topic.get(topic)
        if records is None:
            records = by_topic[topic] = OffsetRecords(group_id, topic)
        yield records.key(partition), None


@lru_cache(maxsize=16)
def _prefix(data: bytes) -> tuple[str, str] | None:
    """Return group and topic of all keys with this prefix, which a partition follows; None if there
    is no such key.

    Cached, because a group commits many partitions of a topic at once.
    """
    key = data + bytes(_PARTITION_BYTES)
    try:
        group_id, topic, _ = _decode_key(key)
    except ProtocolError:
        return None
    return (group_id, topic) if _key(group_id, topic, 0) == key else None


def _decode_key(key: bytes) -> tuple[str, str, int]:
    stored = cast("OffsetCommitKey", decode_record_key(GROUP_KEYS, key))
    return intern(stored.group), intern(stored.topic), stored.partition


def _key(group_id: str, topic: str, partition: int) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return encode_record_key(GROUP_KEYS, key)
