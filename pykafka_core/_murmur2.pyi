"""Kafka's murmur2, with which Java's producer selects the partition of a key.

Keys are bytes, or text that is hashed as UTF-8. Hashes are Java's signed 32-bit numbers; the
partition is ``(hash & 0x7fffffff) % partitions``, not ``abs(hash)``.
"""

from collections.abc import Collection

from typing_extensions import Buffer

_Key = bytes | str

def murmur2(key: _Key) -> int:
    """Return the hash of ``key``."""

def partition(key: _Key, partitions: int) -> int:
    """Return the partition of ``key``; ``ValueError`` if there are no partitions."""

def murmur2_into(keys: Collection[_Key | None], out: Buffer) -> None:
    """Write the hash of each key to ``out``, a writable buffer of C ``int32``, as long as ``keys``;
    null gives 0.

    ``keys`` may be a list, a numpy array of objects, or another collection with a length. After an
    error ``out`` is partially written.
    """

def partitions_into(keys: Collection[_Key | None], partitions: int, out: Buffer) -> None:
    """Write the partition of each key to ``out``; null gives -1, for the producer to choose."""
