"""Encodes Arrow decimals like ``numeric_send`` of PostgreSQL: a header and base-10,000 digits.

All values of a column get the same number of digits; the server strips leading and trailing zeros.
"""

from typing import Any

import numpy as np

_BASE = 10_000
_LIMBS = 5
"""32-bit limbs: a decimal128 has four; aligning its scale to the base multiplies by up to 1,000."""


def encoded(column: Any) -> Any:
    """Return a numpy array with one fixed-size structure per element, undefined for nulls.

    Args:
        column: A decimal128 array with 0 <= scale <= precision.
    """
    scale, precision = column.type.scale, column.type.precision
    digits_before, digits_after = -(-(precision - scale) // 4), -(-scale // 4)
    words = np.frombuffer(column.buffers()[1], "<u4").reshape(-1, 4)
    words = words[column.offset : column.offset + len(column)]
    negative = words[:, 3] >= 1 << 31
    digits = _digits(_magnitude(words, negative), -scale % 4, digits_before + digits_after)
    rows = np.empty(
        len(column),
        dtype=[
            ("count", ">i2"),
            ("weight", ">i2"),
            ("sign", ">u2"),
            ("scale", ">i2"),
            ("digits", ">i2", (digits.shape[1],)),
        ],
    )
    rows["count"], rows["weight"], rows["scale"] = digits.shape[1], digits_before - 1, scale
    rows["sign"], rows["digits"] = np.where(negative, 0x4000, 0), digits
    return rows


def _magnitude(words: Any, negative: Any) -> list[Any]:
    """Return absolute values as limbs, lowest first."""
    flipped = np.where(negative[:, None], ~words, words).astype("u8")
    limbs, carry = [], negative.astype("u8")
    for number in range(4):
        total = flipped[:, number] + carry
        limbs.append(total & 0xFFFF_FFFF)
        carry = total >> 32
    return [*limbs, np.zeros(len(words), "u8")]


def _digits(limbs: list[Any], shift: int, count: int) -> Any:
    """Return the digits of the values times ten to the ``shift``, highest first."""
    carry = np.zeros(len(limbs[0]), "u8")
    for number in range(_LIMBS):
        total = limbs[number] * 10**shift + carry
        limbs[number], carry = total & 0xFFFF_FFFF, total >> 32
    digits = np.zeros((len(limbs[0]), count), "i2")
    for place in reversed(range(count)):
        digits[:, place] = _divide(limbs)
    return digits


def _divide(limbs: list[Any]) -> Any:
    """Divide in place by the base; return the remainders."""
    rest = np.zeros(len(limbs[0]), "u8")
    for number in reversed(range(_LIMBS)):
        total = (rest << 32) | limbs[number]
        limbs[number], rest = total // _BASE, total % _BASE
    return rest
