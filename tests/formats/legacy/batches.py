"""Message formats 0 and 1 in plain Python: a decoder, and an encoder for random partitions.

An entry is what stands in a segment: an offset, a size and a message, which is a record or wraps
the compressed entries of several records. The inner offsets of format 0 are those of the records;
those of format 1 count from the wrapper's first record, and the wrapper has the last one's offset.
"""

import gzip
import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import snappy  # type: ignore[import-untyped]

Codec = Literal["none", "gzip", "snappy", "lz4"]
CODECS: Final[tuple[Codec, ...]] = ("none", "gzip", "snappy", "lz4")
CODEC_MASK: Final = 7
LOG_APPEND_TIME: Final = 8
"""The attribute of format 1; of an entry in a wrapper, the wrapper's counts."""
NO_TIMESTAMP: Final = -1
XERIAL: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""The header of snappy-java's stream."""
LZ4_CHECKSUM: Final = 6
"""The position of the header checksum in the frames that Kafka writes: no content size."""


class Row(NamedTuple):
    """A record as a consumer of Kafka sees it."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None


def encoded(
    rows: Sequence[Row], magic: int, codec: Codec = "none", append_time_ms: int | None = None
) -> bytes:
    """The entries of some records: one each, or one that wraps all.

    Args:
        rows: At least one, by ascending offset; there may be gaps. Timestamp types are ignored.
        magic: 0 or 1.
        codec: ``none`` for entries without a wrapper.
        append_time_ms: The log append time of all of them (format 1); their own times otherwise.
    """
    append_time = LOG_APPEND_TIME if append_time_ms is not None else 0
    if codec == "none":
        times = [row.timestamp if append_time_ms is None else append_time_ms for row in rows]
        return b"".join(
            _entry(row.offset, magic, append_time, time, row.key, row.value)
            for row, time in zip(rows, times, strict=True)
        )
    base = rows[0].offset if magic == 1 else 0
    inner = b"".join(
        _entry(row.offset - base, magic, 0, row.timestamp, row.key, row.value) for row in rows
    )
    attributes = CODECS.index(codec) | append_time
    time = max(row.timestamp for row in rows) if append_time_ms is None else append_time_ms
    return _entry(rows[-1].offset, magic, attributes, time, None, _compressed(inner, codec, magic))


def _entry(
    offset: int, magic: int, attributes: int, time: int, key: bytes | None, value: bytes | None
) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    body += struct.pack(">q", time) if magic == 1 else b""
    body += _sized(key) + _sized(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _compressed(data: bytes, codec: Codec, magic: int) -> bytes:
    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec == "snappy":
        block = snappy.compress(data)
        return XERIAL + struct.pack(">i", len(block)) + bytes(block)
    frame = bytearray(lz4.frame.compress(data, block_linked=False, store_size=False))
    if magic == 0:
        frame[LZ4_CHECKSUM] = _kafkas_checksum(frame)
    return bytes(frame)


def _kafkas_checksum(frame: bytearray) -> int:
    """The header checksum in format 0, which wrongly covers the frame's magic number too."""
    return _xxh32(bytes(frame[:LZ4_CHECKSUM])) >> 8 & 255


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    word = (1 << 32) - 1
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    value = p5 + len(data)
    whole = len(data) // 4 * 4
    for (lane,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + lane * p3 & word, 17) * p4 & word
    for byte in data[whole:]:
        value = _rotated(value + byte * p5 & word, 11) * p1 & word
    for shift, prime in ((15, p2), (13, p3), (16, 1)):
        value = (value ^ value >> shift) * prime & word
    return value


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & (1 << 32) - 1


def decoded(data: bytes) -> Iterator[Row]:
    """The records of formats 0 and 1 in a segment's bytes.

    Raises:
        ValueError: An entry is cut, fails its CRC or has another format.
    """
    for offset, magic, attributes, time, key, value in _entries(data):
        codec = CODECS[attributes & CODEC_MASK]
        if codec == "none":
            yield _row(offset, magic, attributes, time, key, value)
            continue
        assert value is not None, "a wrapper without a value"
        inner = list(_entries(_decompressed(value, codec, magic)))
        base = offset - inner[-1][0] if magic == 1 else 0
        for relative, _, own, own_time, inner_key, inner_value in inner:
            appended = attributes & LOG_APPEND_TIME
            row_time = time if appended else own_time
            yield _row(base + relative, magic, own | appended, row_time, inner_key, inner_value)


Entry = tuple[int, int, int, int, bytes | None, bytes | None]


def _row(
    offset: int, magic: int, attributes: int, time: int, key: bytes | None, value: bytes | None
) -> Row:
    if magic == 0:
        return Row(offset, NO_TIMESTAMP, "NoTimestampType", key, value)
    kind = "LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime"
    return Row(offset, time, kind, key, value)


def _entries(data: bytes) -> Iterator[Entry]:
    position = 0
    while position < len(data):
        if len(data) - position < 18:
            raise ValueError(f"cut at {position}")
        offset, size, crc, magic, attributes = struct.unpack_from(">qiIbb", data, position)
        body = data[position + 16 : position + 12 + size]
        if len(body) != size - 4:
            raise ValueError(f"cut at {position}")
        if magic not in {0, 1}:
            raise ValueError(f"format {magic} at {position}")
        if zlib.crc32(body) != crc:
            raise ValueError(f"CRC at {position}")
        at = 2
        time = NO_TIMESTAMP
        if magic == 1:
            (time,) = struct.unpack_from(">q", body, at)
            at += 8
        key, at = _taken(body, at)
        value, at = _taken(body, at)
        yield offset, magic, attributes, time, key, value
        position += 12 + size


def _taken(body: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", body, at)
    at += 4
    return (None, at) if size < 0 else (body[at : at + size], at + size)


def _decompressed(data: bytes, codec: Codec, magic: int) -> bytes:
    if codec == "gzip":
        return gzip.decompress(data)
    if codec == "snappy":
        out, at = b"", len(XERIAL)
        while at < len(data):
            (size,) = struct.unpack_from(">i", data, at)
            out += snappy.decompress(data[at + 4 : at + 4 + size])
            at += 4 + size
        return out
    frame = bytearray(data)
    if magic == 0:
        if frame[LZ4_CHECKSUM] != _kafkas_checksum(frame):
            raise ValueError("the header checksum of a frame is not Kafka's")
        frame[LZ4_CHECKSUM] = _xxh32(bytes(frame[4:LZ4_CHECKSUM])) >> 8 & 255
    return bytes(lz4.frame.decompress(bytes(frame)))


def random_partition(dice: random.Random, directory: Path, magics: Sequence[int]) -> list[Row]:
    """Write a partition of one to four segments without indexes; return its records.

    Args:
        dice: Decides on everything else: codecs, sizes, null and empty keys and values, gaps in and
            between wrappers, times that go back, log append time.
        directory: Is made; holds only ``.log`` files.
        magics: The formats in the order of the log, such as ``(0, 1)`` for an upgraded partition.
    """
    directory.mkdir(parents=True)
    rows: list[Row] = []
    offset = 0
    for magic in magics:
        for _ in range(dice.randint(1, 2)):
            base, data = offset, b""
            for _ in range(dice.randint(1, 6)):
                batch, more = _random_batch(dice, offset, magic)
                rows += batch
                data += more
                offset = batch[-1].offset + dice.choice((1, 1, 1, 4))
            (directory / f"{base:020}.log").write_bytes(data)
    return rows


def _random_batch(dice: random.Random, offset: int, magic: int) -> tuple[list[Row], bytes]:
    codec = dice.choice(CODECS)
    append_time_ms = dice.randrange(1 << 41) if magic == 1 and dice.random() < 0.3 else None
    plain = []
    for _ in range(dice.randint(1, 8)):
        time = dice.choice((NO_TIMESTAMP, dice.randrange(1 << 41))) if magic == 1 else NO_TIMESTAMP
        plain.append(Row(offset, time, "", _random_bytes(dice), _random_bytes(dice)))
        offset += dice.choice((1, 1, 1, 3))
    data = encoded(plain, magic, codec, append_time_ms)
    return list(decoded(data)), data


def _random_bytes(dice: random.Random) -> bytes | None:
    return dice.choice((None, b"", dice.randbytes(dice.randrange(60)), b"a" * dice.randrange(300)))
