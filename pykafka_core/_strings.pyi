"""Text as Java sees it, in Cython: UTF-16 code units."""

def hash_code(text: str) -> int:
    """``String.hashCode()``: from -2**31 to 2**31 - 1. A lone surrogate counts as one code unit.

    Raises:
        TypeError: The argument is not a str.
    """
