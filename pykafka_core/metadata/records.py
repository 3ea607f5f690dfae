"""Metadata records as the log holds them: bytes ↔ messages."""

from typing import NamedTuple

from pykafka_core.errors import MetadataError
from pykafka_core.protocol import decode_metadata_records, encode_metadata_record
from pykafka_core.protocol.messages import Message

VERSIONS = {
    "PartitionChangeRecord": 2,
    "PartitionRecord": 2,
    "RegisterBrokerRecord": 3,
    "BrokerRegistrationChangeRecord": 2,
}
"""In which version a record is written at metadata.version 29; all others have only 0."""

_BATCH_HEADER_SIZE = 61
_LENGTH_AT = 8
_BATCH_OVERHEAD = 12
_LAST_OFFSET_DELTA_AT = 23


class Decoded(NamedTuple):
    """Records with their offsets; control records are left out. ``next_offset`` is exclusive."""

    records: list[tuple[int, Message]]
    next_offset: int


def encode(record: Message) -> bytes:
    """A record's value: frame version, type, version, body."""
    return encode_metadata_record(record, VERSIONS.get(type(record).__name__, 0))


def decode_batches(batches: bytes) -> Decoded:
    """The metadata records in whole record batches, of a log or a snapshot.

    Raises:
        MetadataError: A record's type or version is unknown to this version, or it is damaged.
    """
    try:
        return Decoded(decode_metadata_records(batches), _next_offset(batches))
    except ValueError as error:
        raise MetadataError(f"the metadata log cannot be understood: {error}") from error


def _next_offset(batches: bytes) -> int:
    """The offset after the last batch: control batches count too, which hold no metadata record."""
    position, offset = 0, 0
    while position + _BATCH_HEADER_SIZE <= len(batches):
        base = int.from_bytes(batches[position : position + _LENGTH_AT], "big")
        size = int.from_bytes(batches[position + _LENGTH_AT : position + _BATCH_OVERHEAD], "big")
        at = position + _LAST_OFFSET_DELTA_AT
        offset = base + int.from_bytes(batches[at : at + 4], "big") + 1
        position += _BATCH_OVERHEAD + size
    return offset
