"""Deliberately damaged metadata snapshots."""

from pykafka_core._core import crc32c


def with_a_malformed_record(snapshot: bytes) -> bytes:
    """Return the snapshot with a record in the second batch that is longer than the batch; the
    checksums are correct.
    """
    start = 12 + int.from_bytes(snapshot[8:12], "big")
    batch = bytearray(snapshot[start:])
    size = 12 + int.from_bytes(batch[8:12], "big")
    batch[61] = 0x7E
    batch[17:21] = crc32c(bytes(batch[21:size])).to_bytes(4, "big")
    return snapshot[:start] + bytes(batch)
