"""Partitions of keys: one at a time, and for a column."""

import array

import pytest

from bench.conftest import Timed
from pykafka_core import _core, _murmur2

KEYS = [b"user-%d" % number for number in range(10_000)]


@pytest.mark.benchmark(group="kernels: murmur2")
def test_one_key(timed: Timed) -> None:
    assert _core.murmur2(b"21") == -973932308  # Java's Utils.murmur2, from Kafka's own tests
    timed(lambda: _murmur2.partition(b"user-4711", 12), records=1)


@pytest.mark.benchmark(group="kernels: murmur2")
def test_column_of_10_000_keys(timed: Timed) -> None:
    out = array.array("i", [0] * len(KEYS))
    _murmur2.partitions_into(KEYS, 12, out)
    assert list(out) == [_core.partition_for_key(key, 12) for key in KEYS]
    timed(lambda: _murmur2.partitions_into(KEYS, 12, out), records=len(KEYS))
