"""Record batches that no producer makes: small as they are sent, and megabytes once they are inflated."""

import gzip
import struct
from functools import cache
from random import Random

import snappy  # type: ignore[import-untyped]
import zstandard

from pykafka_core._core import crc32c

MIB = 1 << 20
GZIP, SNAPPY, ZSTD = 1, 2, 4
NOW_MS = 1_700_000_000_000
_EMPTY_RECORD = b"\x0c\0\0\0\1\1\0"
"""Of offset delta 0, without key, value and headers."""
_ZSTD_WINDOW_LOG = 23
"""8 MiB: a broker that streams with a window of 4 MiB needs all of the output at once."""


def batch_of(value: bytes) -> bytes:
    """A batch of one record without key and headers."""
    return _batch(0, _record(value), 1)


@cache
def stored_bomb(size: int) -> bytes:
    """A valid batch of one record, in zstd: whoever looks into it needs all of it at once."""
    return _batch(ZSTD, _zstd(_large_record(size)), 1)


@cache
def gzip_bomb(size: int) -> bytes:
    """Of gzip, which is inflated through a window."""
    return _bomb(GZIP, gzip.compress(_large_record(size), 9))


@cache
def zstd_bomb(size: int) -> bytes:
    """Of zstd with a window of 8 MiB."""
    return _bomb(ZSTD, _zstd(_large_record(size)))


@cache
def snappy_bomb(size: int) -> bytes:
    """Of one block of Snappy; the batch has about ``size / 20`` bytes."""
    return _bomb(SNAPPY, bytes(snappy.compress(_large_record(size))))


@cache
def empty_records(count: int) -> bytes:
    """Empty records of one offset, in gzip: valid, and to be rewritten as a whole with offsets that are consecutive."""
    return _batch(GZIP, gzip.compress(_EMPTY_RECORD * count, 9), count)


def _bomb(codec: int, records: bytes) -> bytes:
    """One record of two that the batch announces: it is refused once all of it was read."""
    return _batch(codec, records, 2)


def _zstd(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=_ZSTD_WINDOW_LOG)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def _large_record(size: int) -> bytes:
    """Of ``size`` bytes, which shrink a little less than a thousandfold: a broker may refuse what grows more."""
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
