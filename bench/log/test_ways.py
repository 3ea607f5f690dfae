"""Basis of `MAPPED_BATCH_BYTES_MAX` in rust/log/src/segment/appender.rs: mapped copy or write.

Both fill the same 16 MiB of a new file with reserved space, as the log does, so that page faults,
zeroed pages and the work of the file system are included in each figure, which is CPU time. Up to
4 KiB, a copy costs as much as the call; above, the fault for every page costs more. The broker
makes the call on another thread, which costs about 15 microseconds: the constant is the size at
which the difference is larger. The third way maps many pages by one call; it is not used, because
a fault maps several pages anyway (docs/design/0024). Python adds a few hundred nanoseconds to each;
the mapped variants read the file's length before each copy, as the log does.
"""

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.conftest import Timed

TOTAL = 16 << 20
POPULATED = 64 << 10
MADV_POPULATE_WRITE = 23
"""Since Linux 5.14; the module ``mmap`` has no name for it."""
SIZES = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]


def mapped(file: int, data: bytes) -> None:
    size = len(data)
    with mmap.mmap(file, TOTAL) as window:
        for position in range(0, TOTAL, size):
            os.lseek(file, 0, os.SEEK_END)
            window[position : position + size] = data


def populated(file: int, data: bytes) -> None:
    """Copy, with the pages of each further `POPULATED` bytes mapped by one call."""
    size, end = len(data), 0
    with mmap.mmap(file, TOTAL) as window:
        for position in range(0, TOTAL, size):
            os.lseek(file, 0, os.SEEK_END)
            if position + size > end:
                window.madvise(MADV_POPULATE_WRITE, end, POPULATED)
                end += POPULATED
            window[position : position + size] = data


def written(file: int, data: bytes) -> None:
    for position in range(0, TOTAL, len(data)):
        os.pwrite(file, data, position)


@pytest.mark.benchmark(
    group="log: 16 MiB of a fresh file, mapped or written", max_time=0.3, timer=time.process_time
)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", [mapped, populated, written])
def test_ways(timed: Timed, way: Callable[[int, bytes], None], size: int, tmp_path: Path) -> None:
    data, path = os.urandom(size), tmp_path / "segment"

    def fill() -> None:
        file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
        os.posix_fallocate(file, 0, TOTAL)
        way(file, data)
        os.close(file)

    fill()
    assert path.read_bytes() == data * (TOTAL // size)
    timed(fill, size_bytes=TOTAL)
