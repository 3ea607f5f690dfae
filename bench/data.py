"""Records and batches for all benchmarks, equal in each run."""

import json
import random

from pykafka_core import _core

NOW_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def records(count: int, value_size: int, *, seed: int = 1) -> list[tuple[bytes, bytes]]:
    """Return JSON-like values of about ``value_size`` bytes, compressible by 3 to 6, with keys."""
    source = random.Random(seed)
    words = ["".join(source.choices("abcdefghijklmnop", k=7)) for _ in range(200)]
    return [
        (b"key-%d" % source.randrange(100), _value(source, words, value_size)) for _ in range(count)
    ]


def _value(source: random.Random, words: list[str], size: int) -> bytes:
    picked = source.choices(words, k=size // 10 + 1)
    return json.dumps({"id": source.randrange(10**6), "words": picked}).encode()[:size].ljust(size)


def batch(size_bytes: int, value_size: int, *, compression: str = "none") -> tuple[bytes, int]:
    """Return one batch of records of about ``size_bytes`` uncompressed, and their count."""
    count = max(1, size_bytes // (value_size + 20))
    built = _core.build_batch(
        records(count, value_size), compression=compression, timestamp_default=NOW_MS
    )
    return built, count
