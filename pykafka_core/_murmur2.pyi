"""Kafka's murmur2, by which Java's producer chooses the partition of a key.

Keys are bytes, or text that stands for its UTF-8. Hashes are Java's signed 32-bit numbers; the partition is
``(hash & 0x7fffffff) % partitions``, not ``abs(hash)``.
"""

from collections.abc import Collection

from typing_extensions import Buffer

_Key = bytes | str

def murmur2(key: _Key) -> int:
    """The hash of ``key``."""

def partition(key: _Key, partitions: int) -> int:
    """The partition of ``key``; ``ValueError`` when there are none."""

def murmur2_into(keys: Collection[_Key | None], out: Buffer) -> None:
    """Write the hash of each key to ``out``, a writable buffer of C ``int32``, as long as ``keys``; null gives 0.

    ``keys`` may be a list, a numpy array of objects, or anything else with a length. On an error some of ``out`` is
    written.
    """

def partitions_into(keys: Collection[_Key | None], partitions: int, out: Buffer) -> None:
    """The same with partitions; null gives -1, for the producer to choose."""
