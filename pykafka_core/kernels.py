"""Partitions and fingerprints of whole columns, computed in Rust without the GIL.

A column is any object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (pyarrow, polars,
pandas, Spark's batches), or a list or numpy array of objects. Strings are used as UTF-8, integers
as big-endian bytes, as Kafka's own serializers write them. Needs pyarrow: ``pip install
'pykafka_core[arrow]'``.
"""

from collections.abc import Collection
from typing import Any, Literal, TypeAlias, cast

try:
    import pyarrow as pa
except ImportError as error:
    raise ImportError(
        "pykafka_core.kernels needs pyarrow: pip install 'pykafka_core[arrow]'"
    ) from error

from pykafka_core import _core, _keys

__all__ = ["PARTITIONERS", "Keys", "Partitioner", "fingerprints", "partitions"]

Partitioner: TypeAlias = Literal["murmur2", "crc32", "fnv1a"]
PARTITIONERS: tuple[Partitioner, ...] = ("murmur2", "crc32", "fnv1a")
"""Java's default; librdkafka's ``consistent`` and ``consistent_random``; ``fnv1a`` of Sarama and
librdkafka."""

_PARTITIONS_MAX = 2**31 - 1
_SEED_MAX = 2**32 - 1

Keys: TypeAlias = "_core.ArrowArrayLike | _core.ArrowStreamLike | Collection[bytes | str | None]"
"""A column; see the module."""


def partitions(
    keys: Keys, num_partitions: int, partitioner: Partitioner = "murmur2"
) -> pa.Int32Array:
    """Return the partition that a client's partitioner selects for each key.

    Args:
        keys: string, binary, their large, view and fixed-size forms; int32 (4 bytes big-endian) or
            int64 (8); or a collection of bytes, str and None. Other numbers, such as float64 and
            int16, are rejected.
        num_partitions: Of the topic, 1 to 2147483647.
        partitioner: ``murmur2`` is ``(hash & 0x7fffffff) % n``, ``crc32`` the unsigned ``hash %
            n``, ``fnv1a`` ``abs(signed hash) % n``.

    Returns:
        An int32 for each key, 0 <= partition < num_partitions; null for a null key, for which the
        producer selects a partition. The empty key is hashed, although librdkafka's default,
        ``consistent_random``, treats it like null.

    Raises:
        ValueError: The partitioner or number of partitions is invalid; or an array is inconsistent.
        TypeError: Keys of another type.
        UnicodeEncodeError: A str with a lone surrogate.
    """
    check_partitioner(num_partitions, partitioner)
    return pa.array(_core.partitions(_column(keys), num_partitions, partitioner))


def fingerprints(*columns: Keys, seed: int = 0) -> pa.FixedSizeBinaryArray:
    """Return 128-bit digests (MurmurHash3 x64) that identify rows.

    For one column it is the digest of each value's bytes. For several columns it is the digest of
    the row, each value preceded by its length (4 bytes big-endian, -1 for null): rows that differ
    in a value, in the order of columns, or in the boundaries between values have different input.
    The type of a column matters only through its bytes: a string and a binary of the same bytes
    have the same id, an int32 and an int64 of the same number have not.

    Args:
        columns: See ``keys`` of `partitions`; also every integer, date, time and timestamp, by its
            number's bytes.
        seed: 0 to 4294967295. It separates ledgers, but is not a secret: ids that were made to
            collide collide under every seed.

    Returns:
        16 bytes for each row. For one column, null where it is null; never null for several
        columns.

    Raises:
        ValueError: No columns, columns of different length, a seed out of range, an array that is
            inconsistent.
        TypeError: A column of another type.
    """
    if not columns:
        raise ValueError("a fingerprint needs 1 column at least")
    if not 0 <= seed <= _SEED_MAX:
        raise ValueError(f"a seed is 0 to {_SEED_MAX}, not {seed}")
    return pa.array(_core.fingerprints(*map(_column, columns), seed=seed))


def check_partitioner(num_partitions: int, partitioner: str) -> None:
    """Raise the errors of `partitions` for these two arguments."""
    if partitioner not in PARTITIONERS:
        known = ", ".join(PARTITIONERS)
        raise ValueError(f"unknown partitioner {partitioner!r}; there are {known}")
    if not isinstance(num_partitions, int) or isinstance(num_partitions, bool):
        raise TypeError(f"num_partitions is an int, not {type(num_partitions).__name__}")
    if not 1 <= num_partitions <= _PARTITIONS_MAX:
        raise ValueError(f"num_partitions is 1 to {_PARTITIONS_MAX}, not {num_partitions}")


def _column(keys: Any) -> "_core.ArrowArrayLike":
    """Return ``keys`` as one Arrow array, without a copy if they already are one."""
    if isinstance(keys, str | bytes | bytearray):
        kind = type(keys).__name__
        raise TypeError(f"a column holds keys, this {kind} is one: put it into a list")
    if hasattr(keys, "__arrow_c_array__"):
        array = keys
    elif isinstance(keys, pa.ChunkedArray) or hasattr(keys, "__arrow_c_stream__"):
        chunks = pa.chunked_array(keys)
        array = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
    elif hasattr(keys, "__array__") and keys.dtype.kind in "iufM":  # numpy, and pandas before 3
        array = pa.array(keys)
    else:
        array = _packed(keys)
    return cast("_core.ArrowArrayLike", array)


def _packed(keys: Collection[bytes | str | None]) -> pa.LargeBinaryArray:
    """Return a collection of Python keys as one Arrow array."""
    count, nulls, *buffers = _keys.pack(keys)
    buffers = [pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers, nulls)
