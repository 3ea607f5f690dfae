"""How `dedup_stream` converts event times, without Spark."""

import logging

import numpy as np
import pytest

from spark_udfs.dedup.fingerprints import Fingerprints
from spark_udfs.dedup.memory import Memory, Times, forget, union
from spark_udfs.dedup.stream import _claim_at

NOW, HORIZON = 10**12, 3_600_000


def ids(*numbers: int) -> Fingerprints:
    return np.array([(number, 0) for number in numbers], np.uint64)


def claim(memory: Memory, fingerprints: Fingerprints, times: Times) -> tuple[list[int], Memory]:
    kept, news = _claim_at(NOW, memory, fingerprints, times, HORIZON)
    memory = union([memory, news])
    return kept.tolist(), forget(memory, memory.newest, HORIZON)


def test_time_in_the_future_counts_as_now_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        kept, memory = claim(Memory.blank(), ids(1, 2), np.array([NOW, NOW + 10**10]))
    assert kept == [0, 1]
    assert "1 rows have an event_time after that of their micro-batch, by up to 10000000000" in (
        caplog.text
    )
    caplog.clear()
    kept, memory = claim(memory, ids(1, 2, 3), np.array([NOW] * 3))
    assert kept == [2]
    assert memory.newest == NOW
    assert caplog.text == ""


def test_ids_are_remembered_after_a_clock_went_back() -> None:
    ahead = Memory(NOW + HORIZON // 16, {})
    _, memory = claim(ahead, ids(1), np.array([NOW]))
    kept, _ = claim(memory, ids(1), np.array([NOW]))
    assert kept == []
