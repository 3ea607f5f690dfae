# cython: language_level=3
"""Kafka's murmur2 over sequences of keys; `partition` in a loop, but without Python in the loop."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, uint32_t


cdef enum:
    SEED = 0x9747b28c
    M = 0x5bd1e995


cdef uint32_t hash_bytes(const unsigned char* key, Py_ssize_t size) noexcept nogil:
    """Return the hash of ``size`` bytes, independent of the byte order of the machine."""
    cdef uint32_t value = <uint32_t>SEED ^ <uint32_t>size
    cdef uint32_t k
    cdef const unsigned char* end = key + (size & ~3)
    while key < end:
        k = key[0] | <uint32_t>key[1] << 8 | <uint32_t>key[2] << 16 | <uint32_t>key[3] << 24
        k *= <uint32_t>M
        k ^= k >> 24
        value = value * <uint32_t>M ^ k * <uint32_t>M
        key += 4
    size &= 3
    if size == 3:
        value ^= <uint32_t>key[2] << 16
    if size >= 2:
        value ^= <uint32_t>key[1] << 8
    if size >= 1:
        value = (value ^ key[0]) * <uint32_t>M
    value ^= value >> 13
    value *= <uint32_t>M
    return value ^ value >> 15


cdef uint32_t hash_key(object key) except? 0:
    """The hash of bytes, or of text in UTF-8."""
    cdef Py_ssize_t size
    cdef const char* text
    if isinstance(key, bytes):
        return hash_bytes(<const unsigned char*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    if isinstance(key, str):
        text = PyUnicode_AsUTF8AndSize(key, &size)
        return hash_bytes(<const unsigned char*>text, size)
    raise TypeError(f"a key is bytes, str or None, not {type(key).__name__}")


cdef int check(Py_ssize_t keys, Py_ssize_t out) except -1:
    if keys != out:
        raise ValueError(f"{keys} keys and room for {out} results")
    return 0


def murmur2(key):
    return <int32_t>hash_key(key)


def partition(key, int32_t partitions):
    if partitions < 1:
        raise ValueError("a topic has 1 partition at least")
    return <int32_t>(hash_key(key) & 0x7fffffff) % partitions


def murmur2_into(keys, int32_t[::1] out):
    cdef Py_ssize_t at
    cdef object key
    check(len(keys), out.shape[0])
    for at, key in enumerate(keys):
        out[at] = 0 if key is None else <int32_t>hash_key(key)


def partitions_into(keys, int32_t partitions, int32_t[::1] out):
    cdef Py_ssize_t at
    cdef object key
    if partitions < 1:
        raise ValueError("a topic has 1 partition at least")
    check(len(keys), out.shape[0])
    for at, key in enumerate(keys):
        out[at] = -1 if key is None else <int32_t>(hash_key(key) & 0x7fffffff) % partitions
