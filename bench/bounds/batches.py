"""Record batches that no real producer creates: small when sent, megabytes after inflation."""

import gzip
import struct
from functools import cache
from random import Random

import lz4.frame  # type: ignore[import-untyped]
import snappy  # type: ignore[import-untyped]
import zstandard

from pykafka_core._core import crc32c

MIB = 1 << 20
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
NOW_MS = 1_700_000_000_000
_EMPTY_RECORD = b"\x0c\0\0\0\1\1\0"
"""It has offset delta 0, and no key, value or headers."""
_ZSTD_WINDOW_LOG = 23
"""8 MiB: a broker that streams with a window of 4 MiB needs the whole output at once."""


def batch_of(value: bytes) -> bytes:
    """Return a batch of one record without key and headers."""
    return _batch(0, _record(value), 1)


@cache
def stored_bomb(size: int) -> bytes:
    """Return a valid zstd batch of one record, which can only be read as a whole."""
    return _batch(ZSTD, _zstd(_large_record(size)), 1)


@cache
def gzip_bomb(size: int) -> bytes:
    """Return a gzip batch, which is inflated through a window."""
    return _bomb(GZIP, gzip.compress(_large_record(size), 9))


@cache
def zstd_bomb(size: int) -> bytes:
    """Return a zstd batch with a window of 8 MiB."""
    return _bomb(ZSTD, _zstd(_large_record(size)))


@cache
def snappy_bomb(size: int) -> bytes:
    """Return a batch with one Snappy block, of about ``size / 20`` bytes."""
    return _bomb(SNAPPY, bytes(snappy.compress(_large_record(size))))


@cache
def empty_records(count: int, codec: int = GZIP) -> bytes:
    """Return a valid batch of records with equal offsets, which is rewritten as a whole."""
    records = _EMPTY_RECORD * count
    compressed = gzip.compress(records, 9) if codec == GZIP else _lz4(records)
    return _batch(codec, compressed, count)


def _bomb(codec: int, records: bytes) -> bytes:
    """Return a batch with one of two announced records: it is rejected after it was fully read."""
    return _batch(codec, records, 2)


def _lz4(data: bytes) -> bytes:
    return bytes(lz4.frame.compress(data, block_linked=False))


def _zstd(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=_ZSTD_WINDOW_LOG)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def _large_record(size: int) -> bytes:
    """Return a record of ``size`` bytes that shrinks by less than 1000, the limit of a broker."""
    return _record(Random(size).randbytes(size // 900).ljust(size, b"\0"))


def _record(value: bytes) -> bytes:
    record = b"\0\0\0\1" + _varint(len(value)) + value + b"\0"
    return _varint(len(record)) + record


def _batch(attributes: int, records: bytes, count: int) -> bytes:
    times = (NOW_MS, NOW_MS)
    after_crc = struct.pack(">hiqqqhii", attributes, count - 1, *times, -1, -1, -1, count) + records
    head = struct.pack(">ibI", 0, 2, crc32c(after_crc))
    return struct.pack(">qi", 0, len(head) + len(after_crc)) + head + after_crc


def _varint(value: int) -> bytes:
    zigzag, encoded = value << 1, bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*encoded, zigzag])
