"""CRC-32C of a batch's bytes, which is computed once for every produced and checked batch."""

import random

import pytest

from bench.conftest import Timed
from pykafka_core import _core

CHECK = 0xE3069283  # CRC of "123456789" in the catalogue of CRCs


@pytest.mark.parametrize("size", [1024, 65536, 1 << 20])
@pytest.mark.benchmark(group="kernels: crc")
def test_crc32c(timed: Timed, size: int) -> None:
    assert _core.crc32c(b"123456789") == CHECK
    data = random.Random(1).randbytes(size)
    timed(lambda: _core.crc32c(data), size_bytes=size)
