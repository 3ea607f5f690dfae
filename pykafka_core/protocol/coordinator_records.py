"""Keys and values of the coordinators' records, as `__consumer_offsets` and its like hold them.

A key begins with two bytes that name the kind of record, a value with two bytes that hold its
version; the message follows. (The kinds of one topic say nothing about those of another.)
"""

import struct

from pykafka_core._core import ProtocolError, decode_message, encode_message
from pykafka_core.protocol.messages import Message

_NUMBER = struct.Struct(">h")

GROUP_KEYS: tuple[str, ...] = (
    "LegacyOffsetCommitKey",
    "OffsetCommitKey",
    "GroupMetadataKey",
    "ConsumerGroupMetadataKey",
    "ConsumerGroupPartitionMetadataKey",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupTargetAssignmentMetadataKey",
    "ConsumerGroupTargetAssignmentMemberKey",
    "ConsumerGroupCurrentMemberAssignmentKey",
    "",
    "ShareGroupMemberMetadataKey",
    "ShareGroupMetadataKey",
    "ShareGroupTargetAssignmentMetadataKey",
    "ShareGroupTargetAssignmentMemberKey",
    "ShareGroupCurrentMemberAssignmentKey",
    "ShareGroupStatePartitionMetadataKey",
    "ConsumerGroupRegularExpressionKey",
    "StreamsGroupMetadataKey",
    "StreamsGroupMemberMetadataKey",
    "StreamsGroupTargetAssignmentMetadataKey",
    "StreamsGroupTargetAssignmentMemberKey",
    "StreamsGroupCurrentMemberAssignmentKey",
    "StreamsGroupTopologyKey",
)
"""Kinds of record in `__consumer_offsets`, by number; Kafka 4.2 has no ninth."""

TRANSACTION_KEYS: tuple[str, ...] = ("TransactionLogKey",)
"""Kinds of record in `__transaction_state`."""

SHARE_KEYS: tuple[str, ...] = ("ShareSnapshotKey", "ShareUpdateKey")
"""Kinds of record in `__share_group_state`."""


def decode_record_key(kinds: tuple[str, ...], key: bytes) -> Message:
    """Read a key of a topic with those kinds of record.

    Raises:
        ProtocolError: The kind is unknown, or the bytes are no key of it.
    """
    kind = _leading_number(key)
    if not 0 <= kind < len(kinds) or not kinds[kind]:
        raise ProtocolError(f"unknown kind of record {kind}")
    return decode_message(kinds[kind], 0, key[2:])


def encode_record_key(kinds: tuple[str, ...], key: Message) -> bytes:
    """Write a key; `ValueError` if it is none of those kinds."""
    return kinds.index(type(key).__name__).to_bytes(2, "big") + encode_message(key, 0)


def decode_record_value(name: str, value: bytes) -> Message:
    """Read a value by the name of its message, as in ``OffsetCommitValue``.

    Raises:
        ProtocolError: The version is unknown, or the bytes are no such value.
    """
    return decode_message(name, _leading_number(value), value[2:])


def encode_record_value(value: Message, version: int) -> bytes:
    """Write a value in that version."""
    return version.to_bytes(2, "big") + encode_message(value, version)


def _leading_number(data: bytes) -> int:
    try:
        (number,) = _NUMBER.unpack_from(data)
    except struct.error:
        raise ProtocolError(f"2 bytes needed, {len(data)} remain") from None
    return int(number)
