"""Partitions and fingerprints of columns, compared with pure Python, numpy and mmh3.

The columns have 200,000 keys, of 12 to 28 bytes or of 20 bytes. The alternatives get their best
input, lists of bytes that were created before. Compare ratios within a group.
"""

import random
import zlib
from collections.abc import Callable
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest

from bench.conftest import Timed
from pykafka_core import kernels
from tests.pyx import twins

COUNT = 200_000
PARTITIONS = 12


def keys(low: int, high: int) -> list[bytes]:
    source = random.Random(1)
    return [source.randbytes(source.randint(low, high)) for _ in range(COUNT)]


COLUMNS = {"of 20 bytes": keys(20, 20), "of 12 to 28 bytes": keys(12, 28)}


def numpy_murmur2(offsets: Any, data: Any) -> Any:
    """Kafka's murmur2 of all keys in parallel: as many passes as the longest key has words."""
    m, starts, sizes = np.uint32(0x5BD1E995), offsets[:-1].astype(np.int64), np.diff(offsets)
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    words = np.lib.stride_tricks.sliding_window_view(padded, 4)
    hashes = np.uint32(0x9747B28C) ^ sizes.astype(np.uint32)
    whole = sizes // 4
    for step in range(int(whole.max(initial=0))):
        live = np.flatnonzero(whole > step)
        k = words[starts[live] + 4 * step].view(np.uint32).ravel() * m
        hashes[live] = hashes[live] * m ^ (k ^ k >> np.uint32(24)) * m
    tails = np.flatnonzero(sizes % 4)
    bits = (8 * (sizes[tails] % 4)).astype(np.uint32)
    last = words[starts[tails] + 4 * whole[tails]].view(np.uint32).ravel()
    last &= (np.uint32(1) << bits) - np.uint32(1)
    hashes[tails] = (hashes[tails] ^ last) * m
    hashes ^= hashes >> np.uint32(13)
    hashes *= m
    return hashes ^ hashes >> np.uint32(15)


def numpy_partitions(column: Any) -> Any:
    _, offsets, data = column.buffers()
    hashes = numpy_murmur2(np.frombuffer(offsets, np.int32), np.frombuffer(data, np.uint8))
    return ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(PARTITIONS)).astype(np.int32)


PEERS: dict[str, Callable[[list[bytes], Any], Any]] = {
    "kernel": lambda _, column: kernels.partitions(column, PARTITIONS),
    "kernel, objects": lambda plain, _: kernels.partitions(plain, PARTITIONS),
    "numpy": lambda _, column: numpy_partitions(column),
    "pure Python": lambda plain, _: [twins.partition(key, PARTITIONS) for key in plain],
}


@pytest.mark.parametrize("sizes", COLUMNS)
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.benchmark(group="kernels: partitions by murmur2")
def test_murmur2(timed: Timed, peer: str, sizes: str) -> None:
    plain, column = COLUMNS[sizes], pa.array(COLUMNS[sizes], pa.binary())
    found = PEERS[peer](plain, column)
    assert list(map(int, found)) == [twins.partition(key, PARTITIONS) for key in plain]
    timed(lambda: PEERS[peer](plain, column), records=COUNT)


@pytest.mark.parametrize("peer", ["kernel", "zlib in a loop"])
@pytest.mark.benchmark(group="kernels: partitions by crc32")
def test_crc32(timed: Timed, peer: str) -> None:
    plain = COLUMNS["of 12 to 28 bytes"]
    column = pa.array(plain, pa.binary())
    looped = [zlib.crc32(key) % PARTITIONS for key in plain]
    assert kernels.partitions(column, PARTITIONS, "crc32").to_pylist() == looped
    if peer == "kernel":
        timed(lambda: kernels.partitions(column, PARTITIONS, "crc32"), records=COUNT)
    else:
        timed(lambda: [zlib.crc32(key) % PARTITIONS for key in plain], records=COUNT)


@pytest.mark.parametrize("type_", ["int64", "int32", "string", "large_string", "string_view"])
@pytest.mark.benchmark(group="kernels: partitions by type")
def test_other_types(timed: Timed, type_: str) -> None:
    numbers = pa.array(range(0, COUNT * 7919, 7919), pa.int64())
    column = numbers.cast(type_, safe=False)
    text = column.cast("string")
    if "string" in type_:
        same = kernels.partitions(text, PARTITIONS)
    else:
        size = column.type.bit_width // 8
        plain = [number.to_bytes(size, "big") for number in column.to_pylist()]
        same = kernels.partitions(plain, PARTITIONS)
    assert kernels.partitions(column, PARTITIONS).equals(same)
    timed(lambda: kernels.partitions(column, PARTITIONS), records=COUNT)


@pytest.mark.parametrize("peer", ["kernel", "mmh3 in a loop", "kernel, two columns"])
@pytest.mark.benchmark(group="kernels: fingerprints")
def test_fingerprints(timed: Timed, peer: str) -> None:
    plain = COLUMNS["of 12 to 28 bytes"]
    column = pa.array(plain, pa.binary())
    looped = [mmh3.mmh3_x64_128_digest(key, 0) for key in plain]
    assert kernels.fingerprints(column).to_pylist() == looped
    calls: dict[str, Callable[[], object]] = {
        "kernel": lambda: kernels.fingerprints(column),
        "kernel, two columns": lambda: kernels.fingerprints(column, column),
        "mmh3 in a loop": lambda: [mmh3.mmh3_x64_128_digest(key, 0) for key in plain],
    }
    timed(calls[peer], records=COUNT)
