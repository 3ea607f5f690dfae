"""Batches in Python: built from tuples, iterated as `Record` objects, converted to Arrow."""

from collections import deque

import pyarrow
import pytest

from bench.conftest import Timed
from bench.data import CODECS, NOW_MS, batch, records
from pykafka_core import _core
from pykafka_core._records import RecordBatchReader

VALUE_SIZES = [100, 1000]
SIZE = 1 << 20


@pytest.mark.parametrize("value_size", VALUE_SIZES)
@pytest.mark.benchmark(group="kernels: build a batch of 64 KiB")
def test_build(timed: Timed, value_size: int) -> None:
    given = records(65536 // (value_size + 20), value_size)

    def build() -> bytes:
        return _core.build_batch(given, timestamp_default=NOW_MS)

    assert [(record.key, record.value) for record in RecordBatchReader(build())] == given
    timed(build, size_bytes=len(build()), records=len(given))


@pytest.mark.parametrize("value_size", VALUE_SIZES)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.benchmark(group="kernels: iterate records of 1 MiB")
def test_iterate(timed: Timed, codec: str, value_size: int) -> None:
    data, count = batch(SIZE, value_size, compression=codec)
    given = records(count, value_size)
    assert [(record.key, record.value) for record in RecordBatchReader(data)] == given
    timed(lambda: deque(RecordBatchReader(data), maxlen=0), size_bytes=SIZE, records=count)


@pytest.mark.parametrize("value_size", VALUE_SIZES)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.benchmark(group="kernels: 1 MiB to Arrow")
def test_to_arrow(timed: Timed, codec: str, value_size: int) -> None:
    data, count = batch(SIZE, value_size, compression=codec)
    rows = pyarrow.record_batch(_core.batches_to_arrow(data))
    given = records(count, value_size)
    assert rows.column("value").to_pylist() == [value for _, value in given]
    timed(lambda: _core.batches_to_arrow(data), size_bytes=SIZE, records=count)


@pytest.mark.benchmark(group="kernels: check CRCs of 1 MiB in batches of 16 KiB")
def test_check_batches(timed: Timed) -> None:
    one, count = batch(16384, 1000)
    data = one * 64
    assert _core.check_batches(data) == len(data)
    timed(lambda: _core.check_batches(data), size_bytes=len(data), records=64 * count)
