"""Kafka's messages: bytes to objects and back, for every API and stored record of Kafka 4.4.

One class per message, for all versions: the version is an argument of each function that reads or
writes bytes, as in Kafka. A field that a version does not have is read as its default; writing
another value in such a version raises an error, unless Kafka marks the field as ignorable. Bytes
after the end of a message are ignored. Invalid UTF-8 in strings is read as replacement characters.

Sans I/O and stateless, except for `Connection`, a blocking connection to a broker. `ProtocolError`
(a `ValueError`) is raised for invalid bytes and for values that a message cannot contain,
`TypeError` for values of a wrong type.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from pykafka_core.protocol.connection import Connection

encode_request = encode_message
encode_response = encode_message

FIELDS_MAX = 4096
"""Fields and list elements that are read or written between two yields, in under a millisecond."""


def decode_request_in_parts(
    api_key: int, version: int, body: bytes
) -> Generator[None, None, Message]:
    """Decode a request like `decode_request`; yields so that other work can run."""
    decoder = RequestDecoder(api_key, version, body)
    while (message := decoder.read(FIELDS_MAX)) is None:
        yield
    return message


def __getattr__(name: str) -> object:
    """Import `Connection` when it is first used: a broker needs no socket module."""
    if name != "Connection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pykafka_core.protocol.connection import Connection

    return Connection


__all__ = [
    "FIELDS_MAX",
    "Connection",
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
