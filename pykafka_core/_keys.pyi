"""Python's keys laid end to end, as an Arrow column has them."""

from collections.abc import Collection

def pack(keys: Collection[bytes | str | None]) -> tuple[int, int, bytes, bytes, bytes]:
    """Rows, nulls, and the buffers of a ``large_binary`` array: validity, offsets, data.

    Text becomes UTF-8.

    Raises:
        TypeError: A key of another type.
        UnicodeEncodeError: A lone surrogate.
    """
