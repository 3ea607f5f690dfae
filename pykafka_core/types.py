"""Small values that all layers share: ids, names and numbers with distinct types."""

import base64
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, NewType

Offset = NewType("Offset", int)
"""Position of a record in its partition."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Incremented each time a partition's leader is elected."""

Durability = Literal["fsync", "interval", "os", "memory"]
"""The guarantee of an acknowledgement: docs/DURABILITY.md."""

TopicId = bytes
"""16 bytes, as on the wire."""

ZERO_ID: Final = bytes(16)
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
"""Reserved by Kafka for `METADATA_TOPIC` (``Uuid.METADATA_TOPIC_ID``)."""

GROUP_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, "__share_group_state"})
"""Topics of Kafka's coordinators: clients can neither write to them nor delete their records."""

_RESERVED_IDS: Final = 100
"""Kafka reserves the ids below this (``DirectoryId``)."""
_DASH = 62
"""The six bits that URL-safe base64 encodes as ``-``."""

NS_PER_MS: Final = 1_000_000
FOREVER_NS: Final = 2**62
"""Later than any deadline on a clock in nanoseconds: 146 years."""

NO_AUTHORIZED_OPERATIONS: Final = -(2**31)
"""Value of an authorized-operations field that was not requested."""


PartitionId = tuple[bytes, int]
"""A topic id and the partition's index in the topic."""


class TopicPartition(NamedTuple):
    """One partition, with the topic's name as in requests."""

    topic: str
    partition: int


class ConfigResource(NamedTuple):
    """The resource of settings: a ``kind`` of those below; broker "" is the cluster's default."""

    kind: int
    name: str


RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4
RESOURCE_BROKER_LOGGER: Final = 8
RESOURCE_CLIENT_METRICS: Final = 16
RESOURCE_GROUP: Final = 32


def id_text(value: bytes) -> str:
    """Return a 16-byte id as Kafka prints it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def id_bytes(text: str) -> bytes:
    """Return the 16 bytes of a printed id.

    Raises:
        ValueError: Not 22 characters of URL-safe base64.
    """
    value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    if len(value) != 16:
        raise ValueError(f"an id has 16 bytes, not {len(value)}: {text!r}")
    return value


def random_id(random: Callable[[int], bytes]) -> bytes:
    """Return a new 16-byte id that is not reserved, and whose text does not start with ``-``, like
    a command-line option.

    Args:
        random: Returns the given number of random bytes, such as `os.urandom`.
    """
    while True:
        value = random(16)
        if int.from_bytes(value, "big") >= _RESERVED_IDS and value[0] >> 2 != _DASH:
            return value
