"""Small values that every floor shares: ids, names and the numbers that must not mix."""

import base64
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, NewType

Offset = NewType("Offset", int)
"""A record's logical number in its partition."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Grows by one each time a partition's leader is elected."""

Durability = Literal["fsync", "interval", "os", "memory"]
"""What an acknowledgement promises: docs/DURABILITY.md."""

TopicId = bytes
"""16 bytes, as on the wire."""

ZERO_ID: Final = bytes(16)
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
"""Reserved by Kafka for `METADATA_TOPIC` (``Uuid.METADATA_TOPIC_ID``)."""

GROUP_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, "__share_group_state"})
"""Topics of Kafka's coordinators: clients neither write to them nor delete their records."""

_RESERVED_IDS: Final = 100
"""Kafka keeps the ids below this for meanings of its own (``DirectoryId``)."""
_DASH = 62
"""Of which URL-safe base64 makes ``-``: six bits."""

NO_AUTHORIZED_OPERATIONS: Final = -(2**31)
"""What an authorised-operations field says when nobody asked for it."""


PartitionId = tuple[bytes, int]
"""A topic id and the partition's index in the topic."""


class TopicPartition(NamedTuple):
    """One partition, by name as clients say it."""

    topic: str
    partition: int


class ConfigResource(NamedTuple):
    """Whose settings: a ``kind`` of those below; broker "" is the cluster's default."""

    kind: int
    name: str


RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4
RESOURCE_BROKER_LOGGER: Final = 8
RESOURCE_CLIENT_METRICS: Final = 16
RESOURCE_GROUP: Final = 32


def id_text(value: bytes) -> str:
    """A 16-byte id as Kafka prints it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def id_bytes(text: str) -> bytes:
    """The 16 bytes of a printed id.

    Raises:
        ValueError: Not 22 characters of URL-safe base64.
    """
    value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    if len(value) != 16:
        raise ValueError(f"an id has 16 bytes, not {len(value)}: {text!r}")
    return value


def random_id(random: Callable[[int], bytes]) -> bytes:
    """A new 16-byte id that is neither reserved nor prints with ``-`` first, which tools take for an option.

    Args:
        random: That many random bytes at each call, such as `os.urandom`.
    """
    while True:
        value = random(16)
        if int.from_bytes(value, "big") >= _RESERVED_IDS and value[0] >> 2 != _DASH:
            return value
