"""Text as Java sees it, in Cython: UTF-16 code units."""

def hash_code(text: str) -> int:
    """``String.hashCode()``: from -2**31 to 2**31 - 1. Half a character counts as the code unit that it is.

    Raises:
        TypeError: It is no text.
    """
