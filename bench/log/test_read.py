"""Reads 64 MiB of warm log as bytes, as `Record` objects and as Arrow; compared with a memcpy."""

from collections import deque
from collections.abc import Iterator

import pyarrow
import pytest

from bench.conftest import Timed
from bench.data import batch
from pykafka_core.log import Log, LogConfig

BATCHES = 1024
BATCH = 65400
CONFIG = LogConfig(segment_bytes=1 << 24)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    path = tmp_path_factory.mktemp("read") / "events-0"
    data, _ = batch(BATCH, 1000)
    with Log.open(path, durability="os", config=CONFIG) as log:
        for _ in range(BATCHES):
            log.append(data)
        log.roll()  # views need sealed segments
        yield log


def read_all(log: Log, bytes_max: int) -> int:
    """Read the whole log in pieces, return its size; all batches have the same size and count."""
    records_per_batch = log.log_end_offset // BATCHES
    batch_size = log.statistics().size_bytes // BATCHES
    offset = size = 0
    while data := log.read(offset, bytes_max):
        size += len(data)
        offset += len(data) // batch_size * records_per_batch
    return size


@pytest.mark.benchmark(group="log: read 64 MiB", max_time=1)
def test_memcpy(timed: Timed, log: Log) -> None:
    data = bytearray(log.statistics().size_bytes)
    timed(lambda: bytes(data), size_bytes=len(data))


@pytest.mark.parametrize("bytes_max", [65536, 1 << 20, 8 << 20])
@pytest.mark.benchmark(group="log: read 64 MiB", max_time=1)
def test_read(timed: Timed, log: Log, bytes_max: int) -> None:
    size = log.statistics().size_bytes
    assert read_all(log, bytes_max) == size
    timed(lambda: read_all(log, bytes_max), size_bytes=size, records=log.log_end_offset)


@pytest.mark.benchmark(group="log: read 64 MiB", max_time=1)
def test_records(timed: Timed, log: Log) -> None:
    assert [record.offset for record in log] == list(range(log.log_end_offset))
    size = log.statistics().size_bytes
    timed(lambda: deque(log, maxlen=0), size_bytes=size, records=log.log_end_offset)


@pytest.mark.parametrize("views", [False, True], ids=["binary", "binary_view"])
@pytest.mark.benchmark(group="log: read 64 MiB", max_time=1)
def test_to_arrow(timed: Timed, log: Log, views: bool) -> None:
    """`binary`: one copy, CRCs checked. `binary_view`: segments are mapped, neither is done."""
    batches = log.to_arrow(views=views)
    rows = pyarrow.table(batches)
    assert rows.column("offset").to_pylist() == list(range(log.log_end_offset))
    size = log.statistics().size_bytes
    timed(lambda: log.to_arrow(views=views), size_bytes=size, records=log.log_end_offset)
