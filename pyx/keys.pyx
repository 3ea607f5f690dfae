# cython: language_level=3
"""Python's keys laid end to end, as an Arrow column has them, for the kernels in Rust."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset


cdef const char* bytes_of(object key, Py_ssize_t* size) except? NULL:
    """The bytes of a key, which live as long as it does; NULL for None."""
    if key is None:
        size[0] = 0
        return NULL
    if isinstance(key, bytes):
        size[0] = PyBytes_GET_SIZE(key)
        return PyBytes_AS_STRING(key)
    if isinstance(key, str):
        return PyUnicode_AsUTF8AndSize(key, size)
    raise TypeError(f"a key is bytes, str or None, not {type(key).__name__}")


def pack(keys):
    # A tuple cannot change between the two passes: the first finds the size, the second copies.
    cdef tuple held = tuple(keys)
    cdef Py_ssize_t count = len(held), nulls = 0, at, size = 0
    cdef bytes offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int64_t))
    cdef bytes validity = PyBytes_FromStringAndSize(NULL, (count + 7) // 8)
    cdef int64_t* ends = <int64_t*>PyBytes_AS_STRING(offsets)
    cdef unsigned char* bits = <unsigned char*>PyBytes_AS_STRING(validity)
    cdef const char* key
    memset(bits, 0, PyBytes_GET_SIZE(validity))
    ends[0] = 0
    for at in range(count):
        key = bytes_of(held[at], &size)
        ends[at + 1] = ends[at] + size
        if key is NULL:
            nulls += 1
        else:
            bits[at >> 3] |= 1 << (at & 7)
    cdef bytes data = PyBytes_FromStringAndSize(NULL, ends[count])
    cdef char* out = PyBytes_AS_STRING(data)
    for at in range(count):
        key = bytes_of(held[at], &size)
        if size:
            memcpy(out + ends[at], key, size)
    return count, nulls, validity, offsets, data
