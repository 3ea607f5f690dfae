"""The Python twins of `pyx/`: slow, short, and the oracles of the compiled modules.

They decompress with gzip of the standard library, lz4, python-snappy and zstandard.
"""

import gzip
import struct
from collections.abc import Iterator
from typing import Any

import lz4.frame  # type: ignore[import-untyped]
import snappy  # type: ignore[import-untyped]
import zstandard

HEADER = struct.Struct(">qiibIhiqqqhii")
Fields = tuple[Any, ...]


def murmur2(key: bytes) -> int:
    """Return Kafka's hash of a key as Java's signed int."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for (k,) in struct.iter_unpack("<I", key[:whole]):
        k = k * m & mask
        k ^= k >> 24
        h = (h * m & mask) ^ (k * m & mask)
    if tail := key[whole:]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h ^= h >> 13
    h = h * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def unsnappy(data: bytes) -> bytes:
    """Decompress the Snappy data of librdkafka (one block) or of Java (a header, then blocks)."""
    if not data.startswith(b"\x82SNAPPY\0"):
        return bytes(snappy.uncompress(data))
    out, at = b"", 16
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        out += snappy.uncompress(data[at + 4 : at + 4 + size])
        at += 4 + size
    return out


def decompress(codec: int, data: bytes) -> bytes:
    match codec:
        case 0:
            return data
        case 1:
            return gzip.decompress(data)
        case 2:
            return unsnappy(data)
        case 3:
            return bytes(lz4.frame.decompress(data))
        case 4:
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    raise ValueError(f"codec {codec}")


class Cursor:
    """Reads the fields of a record one after another; raises `ValueError` for a malformed field."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def left(self) -> int:
        return len(self.data) - self.at

    def varint(self, size_max: int = 5) -> int:
        raw = 0
        for i in range(size_max):
            if not self.left():
                break
            byte = self.data[self.at]
            self.at += 1
            raw |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                raw &= 0xFFFFFFFF if size_max == 5 else 0xFFFFFFFFFFFFFFFF
                return raw >> 1 ^ -(raw & 1)
        raise ValueError("varint")

    def sized(self, least: int = 0) -> bytes | None:
        size = self.varint()
        if size < least or size > self.left():
            raise ValueError("length")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at]

    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        count = self.varint()
        if not 0 <= count <= self.left():
            raise ValueError("header count")
        headers = tuple(
            ((self.sized() or b"").decode(errors="replace"), self.sized(-1)) for _ in range(count)
        )
        if self.left():
            raise ValueError("left over")
        return headers


def fits(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("overflow")
    return number


def records(data: bytes, *, control: bool = False) -> Iterator[Fields]:
    """Yield the fields of each record, in the order of `Record`'s arguments."""
    while len(data) >= 17:
        (size,) = struct.unpack_from(">i", data, 8)
        if data[16] != 2 or size < HEADER.size - 12:
            raise ValueError("batch")
        if size + 12 > len(data):
            return
        yield from batch_records(data[: size + 12], control)
        data = data[size + 12 :]


def batch_records(batch: bytes, control: bool) -> Iterator[Fields]:
    (base, _, epoch, _, _, attributes, last, base_ts, max_ts, pid, pepoch, sequence, count) = (
        HEADER.unpack_from(batch)
    )
    if count < 0:
        raise ValueError("count")
    if attributes & 0x20 and not control:
        return
    cursor = Cursor(decompress(attributes & 7, batch[HEADER.size :]))
    for _ in range(count):
        body = Cursor(cursor.sized() or b"")
        if not body.data:
            raise ValueError("size")
        body.at = 1
        timestamp_delta, delta = body.varint(10), body.varint()
        if not 0 <= delta <= last:
            raise ValueError("offset")
        yield (
            fits(base + delta),
            max_ts if attributes & 8 else fits(base_ts + timestamp_delta),
            body.sized(-1),
            body.sized(-1),
            body.headers(),
            attributes >> 3 & 1,
            epoch,
            pid,
            pepoch,
            -1 if sequence < 0 else (sequence + delta) & 0x7FFFFFFF,
        )
    if cursor.left():
        raise ValueError("left over")
