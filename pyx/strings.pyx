# cython: language_level=3
"""Text as Java sees it: UTF-16 code units."""

from libc.stdint cimport int32_t, uint32_t


def hash_code(str text not None):
    cdef uint32_t value = 0, unit
    for unit in text:
        if unit > 0xFFFF:
            value = 31 * value + (0xD7C0 + (unit >> 10))
            unit = 0xDC00 | (unit & 0x3FF)
        value = 31 * value + unit
    return <int32_t>value
