"""Keys and values of the coordinators' records in `__consumer_offsets`, `__transaction_state` and
`__share_group_state`.

A key starts with two bytes for the kind of the record, a value with two bytes for its version; the
message follows. Each topic has its own numbers for the kinds.
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
"""Kinds of records in `__consumer_offsets`, by number; Kafka 4.2 does not have number 9."""

TRANSACTION_KEYS: tuple[str, ...] = ("TransactionLogKey",)
"""Kinds of records in `__transaction_state`."""

SHARE_KEYS: tuple[str, ...] = ("ShareSnapshotKey", "ShareUpdateKey")
"""Kinds of records in `__share_group_state`."""


def decode_record_key(kinds: tuple[str, ...], key: bytes) -> Message:
    """Decode a key of a topic with these kinds of records.

    Raises:
        ProtocolError: The kind is unknown, or the bytes are not a key of this kind.
    """
    kind = _leading_number(key)
    if not 0 <= kind < len(kinds) or not kinds[kind]:
        raise ProtocolError(f"unknown kind of record {kind}")
    return decode_message(kinds[kind], 0, key[2:])


def encode_record_key(kinds: tuple[str, ...], key: Message) -> bytes:
    """Encode a key.

    Raises:
        ValueError: The message is not of one of these kinds.
    """
    return kinds.index(type(key).__name__).to_bytes(2, "big") + encode_message(key, 0)


def decode_record_value(name: str, value: bytes) -> Message:
    """Decode a value; ``name`` is the name of its message, such as ``OffsetCommitValue``.

    Raises:
        ProtocolError: The version is unknown, or the bytes are not such a value.
    """
    return decode_message(name, _leading_number(value), value[2:])


def encode_record_value(value: Message, version: int) -> bytes:
    """Encode a value in a version."""
    return version.to_bytes(2, "big") + encode_message(value, version)


def _leading_number(data: bytes) -> int:
    try:
        (number,) = _NUMBER.unpack_from(data)
    except struct.error:
        raise ProtocolError(f"2 bytes needed, {len(data)} remain") from None
    return int(number)
