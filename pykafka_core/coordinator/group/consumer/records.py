"""The records of consumer groups: kinds 3, 5 to 8 and 16 of `__consumer_offsets`."""

from collections.abc import Iterable, Iterator, Mapping

from pykafka_core.coordinator.group.consumer.group import NO_TIME_MS, ConsumerGroup, ResolvedRegex
from pykafka_core.coordinator.group.consumer.member import (
    ClassicSide,
    ConsumerMember,
    Held,
)
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    encode_record_key,
    encode_record_value,
)
from pykafka_core.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    Message,
)

VALUE_VERSION = 0
"""The only version of all these values."""

_Current = ConsumerGroupCurrentMemberAssignmentValue
_Target = ConsumerGroupTargetAssignmentMemberValue


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> KeyValue:
    """Return the record of a group's epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(ConsumerGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: ConsumerMember) -> KeyValue:
    """Return the record of a member and its subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=_classic(member.classic),
    )
    return _record(_member_key(group_id, member.member_id), value)


def _classic(
    side: ClassicSide | None,
) -> ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None:
    if side is None:
        return None
    protocol = ConsumerGroupMemberMetadataValue.ClassicProtocol
    return ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
        session_timeout_ms=side.session_timeout_ms,
        supported_protocols=[
            protocol(name=name, metadata=metadata) for name, metadata in side.protocols
        ],
    )


def target_epoch_record(group_id: str, epoch: int, time_ms: int = NO_TIME_MS) -> KeyValue:
    """Return the record that completes the target assignments of an epoch; ``time_ms`` is the time
    of their calculation.
    """
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=time_ms
    )
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Mapping[bytes, Iterable[int]]) -> KeyValue:
    """Return the record of a member's target assignment."""
    rows = [
        _Target.TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
        for topic_id, numbers in sorted(target.items())
    ]
    return _record(_target_key(group_id, member_id), _Target(topic_partitions=rows))


def current_record(group_id: str, member: ConsumerMember) -> KeyValue:
    """Return the record of a member's current assignment and epoch."""
    value = _Current(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_rows(member.assigned),
        partitions_pending_revocation=_rows(member.revoking),
    )
    return _record(_current_key(group_id, member.member_id), value)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> KeyValue:
    """Return the record of the topics that a regular expression matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics),
        version=resolved.version,
        timestamp=resolved.timestamp_ms,
    )
    return _record(_regex_key(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> KeyValue:
    """Return the tombstone of a regular expression that no member has."""
    return _tombstone(_regex_key(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> list[KeyValue]:
    """Return the tombstones of a removed member: current assignment, target assignment, member."""
    return [
        _tombstone(_current_key(group_id, member_id)),
        _tombstone(_target_key(group_id, member_id)),
        _tombstone(_member_key(group_id, member_id)),
    ]


def group_tombstones(group: ConsumerGroup) -> Iterator[KeyValue]:
    """Yield the tombstones of a group, like ``ConsumerGroup.createGroupTombstoneRecords``."""
    group_id = group.group_id
    for member_id in group.members:
        yield _tombstone(_current_key(group_id, member_id))
    for member_id in group.members:
        yield _tombstone(_target_key(group_id, member_id))
    yield _tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))
    for member_id in group.members:
        yield _tombstone(_member_key(group_id, member_id))
    for regex in group.regexes:
        yield regex_tombstone(group_id, regex)
    yield _tombstone(ConsumerGroupMetadataKey(group_id=group_id))


def _member_key(group_id: str, member_id: str) -> Message:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> Message:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> Message:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _regex_key(group_id: str, regex: str) -> Message:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)


def _rows(held: Held) -> list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    return [
        _Current.TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(held[topic_id]),
            assignment_epochs=[epoch for _, epoch in sorted(held[topic_id].items())],
        )
        for topic_id in sorted(held)
    ]


def _record(key: Message, value: Message) -> KeyValue:
    return encode_record_key(GROUP_KEYS, key), encode_record_value(value, VALUE_VERSION)


def _tombstone(key: Message) -> KeyValue:
    return encode_record_key(GROUP_KEYS, key), None
