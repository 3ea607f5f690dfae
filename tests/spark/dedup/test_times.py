"""What `dedup_stream` makes of event times, without Spark."""

import logging

import numpy as np
import pytest

from spark_udfs.dedup import memory as memories
from spark_udfs.dedup.fingerprints import Fingerprints
from spark_udfs.dedup.stream import _keep

NOW, HORIZON = 10**12, 3_600_000


def ids(*numbers: int) -> Fingerprints:
    return np.array([(number, 0) for number in numbers], np.uint64)


def test_a_time_of_the_future_counts_as_now_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    keep = _keep(HORIZON)
    with caplog.at_level(logging.WARNING):
        kept, known = keep(None, ids(1, 2), np.array([NOW, NOW + 10**10]), NOW)
    assert kept.tolist() == [0, 1]
    assert "1 rows have an event_time after that of their micro-batch, by up to 10000000000" in (
        caplog.text
    )
    caplog.clear()
    kept, known = keep(known, ids(1, 2, 3), np.array([NOW] * 3), NOW)
    assert kept.tolist() == [2]
    assert memories.decode(known).newest == NOW
    assert caplog.text == ""


def test_a_memory_that_saw_the_future_remembers_again() -> None:
    spoilt = memories.encode(memories.Memory(NOW + 10**10, {}))
    keep = _keep(HORIZON)
    _, known = keep(spoilt, ids(1), np.array([NOW]), NOW)
    kept, _ = keep(known, ids(1), np.array([NOW]), NOW)
    assert kept.tolist() == []
