"""Kafka's messages: bytes to objects and back, for every API and stored record of Kafka 4.4.

One class per message, without a version: the version is an argument wherever bytes are read or
written, as in Kafka itself. A field that a version lacks reads as its default; writing more than
the default into such a version raises, unless Kafka marks the field as ignorable. Bytes behind the
end of a message are ignored. Strings that are not UTF-8 come with replacement characters.

Sans I/O and without state. `ProtocolError` (a `ValueError`) is raised for bad bytes and for values
that a message cannot carry, `TypeError` for values of the wrong type.
"""

from collections.abc import Generator

from pykafka_core._core import (
    EncodedMessage,
    MessageEncoder,
    ProtocolError,
    RequestDecoder,
    api_versions,
    decode_message,
    decode_metadata_record,
    decode_metadata_records,
    decode_request,
    decode_response,
    encode_message,
    encode_metadata_record,
    is_flexible,
    message_versions,
)
from pykafka_core.protocol.coordinator_records import (
    decode_record_key,
    decode_record_value,
    encode_record_key,
    encode_record_value,
)
from pykafka_core.protocol.messages import Message

encode_request = encode_message
encode_response = encode_message

FIELDS_MAX = 4096
"""Fields and list elements read or written between two yields: less than a millisecond's work."""


def decode_request_in_parts(
    api_key: int, version: int, body: bytes
) -> Generator[None, None, Message]:
    """As `decode_request`, yielding where other work may be done."""
    decoder = RequestDecoder(api_key, version, body)
    while (message := decoder.read(FIELDS_MAX)) is None:
        yield
    return message


__all__ = [
    "FIELDS_MAX",
    "EncodedMessage",
    "Message",
    "MessageEncoder",
    "ProtocolError",
    "api_versions",
    "decode_message",
    "decode_metadata_record",
    "decode_metadata_records",
    "decode_record_key",
    "decode_record_value",
    "decode_request",
    "decode_request_in_parts",
    "decode_response",
    "encode_message",
    "encode_metadata_record",
    "encode_record_key",
    "encode_record_value",
    "encode_request",
    "encode_response",
    "is_flexible",
    "message_versions",
]
