"""Memory for the results of reads: a result without memory is only measured.

Theory of operation. The result of a read may be large, and is held until its response is built. A
request reads with a small `Budget` first. Results that fit are returned, so that a small request
takes one read; only the sizes of all others are returned. Once the request has reserved memory for
those, it reads them again with a `Budget` of that size.
"""

from collections.abc import Callable

UNRESERVED_BYTES_MAX = 16 << 10
"""The results of a request, or a response, up to this size are not reserved: they are part of the
fixed cost of a connection."""


class Read:
    """The result of a read.

    Attributes:
        size: Upper bound in bytes of its rows in a part of the response, with their objects.
        held_bytes: Upper bound of the value with all that it refers to.
        value: None if it did not fit, or its budget is closed.
    """

    __slots__ = "held_bytes", "size", "value"

    def __init__(self, size: int, held_bytes: int) -> None:
        self.size = size
        self.held_bytes = held_bytes
        self.value: object = None


class Budget:
    """Memory that the results of several reads share.

    Args:
        bytes_max: Bytes for all results.
    """

    __slots__ = "_bytes_left", "_reads"

    def __init__(self, bytes_max: int) -> None:
        self._bytes_left = bytes_max
        self._reads: list[Read] = []

    def read(self, size: int, held_bytes: int, make: Callable[[], object]) -> Read:
        """Return the size, and the value of ``make`` if it fits."""
        read = Read(size, held_bytes)
        if held_bytes <= self._bytes_left:
            self._bytes_left -= held_bytes
            read.value = make()
            self._reads.append(read)
        return read

    def end(self) -> int:
        """Measure all later reads only; return the bytes that are left."""
        bytes_left, self._bytes_left = self._bytes_left, -1
        return bytes_left

    def close(self) -> None:
        """Release the values, also those in results that are not delivered yet."""
        self.end()
        for read in self._reads:
            read.value = None


def encoded_length_max(text: str | None) -> int:
    """Return an upper bound of the encoded size of a text."""
    if not text:
        return 0
    return len(text) if text.isascii() else 3 * len(text)
