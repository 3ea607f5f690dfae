"""Reads the topics from a consumer's subscription, the only part of its metadata that a coordinator
reads.
"""

from collections.abc import Iterable
from struct import Struct, error

NAMES_MAX = 10_000
"""Maximum number of names that are read in one turn, about 10 ms. Members of one application
usually have equal lists, and equal lists are read once."""
_COUNT = Struct(">hi")  # version, topics
_LENGTH = Struct(">h")
_VERSION_SIZE = 2
_LATEST = 16
"""Number of recent lists that are compared with the next one."""


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of many ``ConsumerProtocolSubscription``, read as version 0, the prefix of
    all versions.

    Returns:
        None if one of them is invalid, or if there are more than `NAMES_MAX` names.
    """
    found: set[str] = set()
    lists: list[bytes] = []
    left = NAMES_MAX
    for metadata in subscriptions:
        known = any(metadata.startswith(one, _VERSION_SIZE) for one in lists)
        if known and metadata[0] < 0x80:  # no negative version
            continue
        try:
            names, end = _read(metadata, left)
        except (error, ValueError):
            return None
        found.update(names)
        left -= len(names)
        lists = [metadata[_VERSION_SIZE:end], *lists[: _LATEST - 1]]
    return frozenset(found)


def _read(metadata: bytes, names_max: int) -> tuple[list[str], int]:
    """Return the names and the position after them."""
    version, count = _COUNT.unpack_from(metadata)
    if version < 0 or not 0 <= count <= names_max:
        raise ValueError("no subscription, or a large one")
    names, position = [], _COUNT.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(metadata, position)
        position += _LENGTH.size
        text = metadata[position : position + length]
        if length < 0 or len(text) < length:
            raise ValueError("a topic's name is cut short")
        names.append(text.decode())
        position += length
    return names, position
