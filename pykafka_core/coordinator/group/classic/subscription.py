"""The one thing that a coordinator reads in a consumer's metadata: the topics it subscribes to."""

from struct import Struct, error

_COUNT = Struct(">hi")  # version, topics
_LENGTH = Struct(">h")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Topics of a ``ConsumerProtocolSubscription``, read as version 0, with which all versions begin.

    Returns:
        None when it is something else.
    """
    try:
        version, count = _COUNT.unpack_from(metadata)
        if version < 0 or not 0 <= count <= len(metadata) // _LENGTH.size:
            return None
        return frozenset(_strings(metadata, count))
    except (error, ValueError):
        return None


def _strings(data: bytes, count: int) -> list[str]:
    strings, position = [], _COUNT.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        text = data[position : position + length]
        if length < 0 or len(text) < length:
            raise ValueError("a topic's name is cut short")
        strings.append(text.decode())
        position += length
    return strings
