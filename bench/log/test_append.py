"""`Log.append` by durability and batch size, compared with plain writes of the 64 KiB batches.

In the first group, ``plain write`` is os.write to one growing file in the same run. On a shared
machine, the ratio of the two is the meaningful figure.
"""

import os
from pathlib import Path

import pytest

from bench.conftest import Timed
from bench.data import batch
from pykafka_core.log import Log, LogConfig

CONFIG = LogConfig(segment_bytes=1 << 30)
SIZES = {"1 KiB": 1024, "16 KiB": 16 * 1024, "64 KiB": 65400, "1 MiB": (1 << 20) - 4096}
CALLS = 256
"""Appends in one timed call, so that each call includes the cost of a window or a reservation."""


def open_log(path: Path, durability: str) -> Log:
    return Log.open(path / "events-0", durability=durability, config=CONFIG)


def check(log: Log, data: bytes, count: int) -> None:
    """Check that the log end counts every record, and that the last batch is read back."""
    assert log.log_end_offset % count == 0
    assert log.read(log.log_end_offset - count)[16:] == data[16:]


@pytest.mark.benchmark(
    group="log: 256 appends of a ready 64 KiB batch, compared with a plain write", max_time=0.5
)
@pytest.mark.parametrize("way", ["plain write", "os", "interval"])
def test_append_64_kib(timed: Timed, way: str, tmp_path: Path) -> None:
    data, count = batch(SIZES["64 KiB"], 1000)
    if way == "plain write":
        file = os.open(tmp_path / "plain", os.O_CREAT | os.O_WRONLY)
        timed(lambda: [os.write(file, data) for _ in range(CALLS)], size_bytes=CALLS * len(data))
        assert os.fstat(file).st_size % len(data) == 0
        os.close(file)
        return
    with open_log(tmp_path, way) as log:
        timed(lambda: [log.append(data) for _ in range(CALLS)], size_bytes=CALLS * len(data))
        check(log, data, count)


@pytest.mark.benchmark(group="log: one append", max_time=0.2)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("durability", ["fsync", "interval", "os"])
def test_append(timed: Timed, durability: str, size: str, tmp_path: Path) -> None:
    data, count = batch(SIZES[size], 100)
    with open_log(tmp_path, durability) as log:
        timed(lambda: log.append(data), size_bytes=len(data), records=count)
        check(log, data, count)
