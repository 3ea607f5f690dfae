"""Counts of latencies in buckets that grow by one percent; millions fit in a few kilobytes."""

import math
from collections import Counter
from collections.abc import Mapping

PERCENTILES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_GROWTH = math.log(1.01)
_LEAST_S = 1e-6


class Latencies:
    """Measured latencies.

    A percentile is at most one percent above the measured value, and never above the largest.
    """

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0
        self.seconds_max = 0.0

    def add(self, seconds: float) -> None:
        """Count one latency; less than a microsecond counts as one."""
        self._buckets[math.ceil(math.log(max(seconds, _LEAST_S) / _LEAST_S) / _GROWTH)] += 1
        self.count += 1
        self.seconds_max = max(self.seconds_max, seconds)

    def percentile(self, share: float) -> float:
        """Return the seconds that ``share`` of all latencies do not exceed.

        ``share`` is above 0 and at most 1. Without latencies it returns 0.0.
        """
        wanted = math.ceil(share * self.count)
        for bucket, count in sorted(self._buckets.items()):
            wanted -= count
            if wanted <= 0:
                return min(_LEAST_S * math.exp(bucket * _GROWTH), self.seconds_max)
        return 0.0

    def milliseconds(self) -> dict[str, float | None]:
        """Return the usual percentiles and the largest latency, by name; None without latencies."""
        found = {name: self.percentile(share) for name, share in PERCENTILES.items()}
        found["max"] = self.seconds_max
        return {name: round(s * 1000, 3) if self.count else None for name, s in found.items()}
