"""Metadata records in the log: bytes ↔ messages."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pykafka_core.errors import InvalidRecordError, KafkaError, MetadataError
from pykafka_core.protocol import (
    decode_metadata_record,
    decode_metadata_records,
    encode_metadata_record,
)
from pykafka_core.protocol.messages import Message

VERSIONS = {
    "PartitionChangeRecord": 2,
    "PartitionRecord": 2,
    "RegisterBrokerRecord": 3,
    "BrokerRegistrationChangeRecord": 2,
}
"""Versions of records at metadata.version 29; others have only version 0."""

CORDONED_VERSIONS = {"RegisterBrokerRecord": 4, "BrokerRegistrationChangeRecord": 3}
"""Versions of records with cordoned directories: from metadata.version 30 on."""

_BATCH_HEADER_SIZE = 61
_LENGTH_AT = 8
_BATCH_OVERHEAD = 12
_LAST_OFFSET_DELTA_AT = 23


class Decoded(NamedTuple):
    """Records with their offsets, without control records. ``next_offset`` is exclusive."""

    records: list[tuple[int, Message]]
    next_offset: int


def encode(record: Message) -> bytes:
    """Return a record's value: frame version, type, version, body."""
    name = type(record).__name__
    is_cordoned = getattr(record, "cordoned_log_dirs", None) is not None
    version = CORDONED_VERSIONS[name] if is_cordoned else VERSIONS.get(name, 0)
    return encode_metadata_record(record, version)


def decode_batches(batches: bytes) -> Decoded:
    """Return the metadata records in whole record batches of a log or a snapshot.

    Raises:
        MetadataError: A record is damaged, or its type or version is not supported; the message
            contains its offset.
    """
    try:
        return Decoded(decode_metadata_records(batches), _next_offset(batches))
    except (ValueError, InvalidRecordError) as error:
        raise MetadataError(_refusal(batches) or str(error)) from error


def decoded(read: Callable[[int], bytes], offset: int) -> Iterator[Decoded]:
    """Yield the records of a metadata log from ``offset`` on.

    Args:
        read: Returns whole batches from an offset on; empty at the log's end.

    Raises:
        MetadataError: Records are damaged or not supported.
    """
    while data := read(offset):
        batches = decode_batches(data)
        if batches.next_offset <= offset:
            raise MetadataError(f"it cannot be read at offset {offset}")
        yield batches
        offset = batches.next_offset


def split_batches(batches: bytes) -> Iterator[bytes]:
    """Yield the batches one by one; the last may be incomplete or garbage."""
    position = 0
    while position < len(batches):
        size_at = position + _LENGTH_AT
        size = int.from_bytes(batches[size_at : position + _BATCH_OVERHEAD], "big", signed=True)
        end = position + max(_BATCH_HEADER_SIZE, _BATCH_OVERHEAD + size)
        yield batches[position:end]
        position = end


def _refusal(batches: bytes) -> str | None:
    """Return the first undecodable record and the reason; None if the batches are damaged."""
    from pykafka_core._records import RecordBatchReader  # imported late: a normal start skips it

    try:
        for record in RecordBatchReader(batches):
            try:
                decode_metadata_record(record.value or b"")
            except ValueError as error:
                return f"the record at offset {record.offset} cannot be understood: {error}"
    except KafkaError:
        return None
    return None


def _next_offset(batches: bytes) -> int:
    """Return the offset after the last batch, which may be a control batch."""
    offset = 0
    for batch in split_batches(batches):
        if len(batch) >= _BATCH_HEADER_SIZE:
            at = _LAST_OFFSET_DELTA_AT
            delta = int.from_bytes(batch[at : at + 4], "big")
            offset = int.from_bytes(batch[:_LENGTH_AT], "big") + delta + 1
    return offset
