"""Each codec in both directions on a batch of 1 KiB records; GB/s refer to uncompressed bytes."""

import pytest

from bench.conftest import Timed
from bench.data import CODECS, NOW_MS, batch, records
from pykafka_core import _core

SIZES = [16 * 1024, 1 << 20]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.benchmark(group="kernels: compress while building")
def test_compress(timed: Timed, codec: str, size: int) -> None:
    given = records(size // 1024, 1000)
    plain = _core.decompress_batch(_core.build_batch(given, timestamp_default=NOW_MS))

    def build() -> bytes:
        return _core.build_batch(given, compression=codec, timestamp_default=NOW_MS)

    assert _core.decompress_batch(build()) == plain
    timed(build, size_bytes=len(plain), records=len(given))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.benchmark(group="kernels: decompress")
def test_decompress(timed: Timed, codec: str, size: int) -> None:
    packed, count = batch(size, 1000, compression=codec)
    plain = _core.decompress_batch(packed)
    assert plain == _core.decompress_batch(batch(size, 1000)[0])
    timed(lambda: _core.decompress_batch(packed), size_bytes=len(plain), records=count)
