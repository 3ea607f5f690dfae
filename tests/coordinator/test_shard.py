"""The records of a turn fit into one batch: all records of an operation are added, or none."""

import pytest

from pykafka_core.coordinator.shard import (
    _RECORD_OVERHEAD,
    BatchFullError,
    CoordinatorResult,
    KeyValue,
)

RECORD: KeyValue = (b"key", b"value")
SIZE = _RECORD_OVERHEAD + 8
TOMBSTONE: KeyValue = (b"key", None)


def turn_of(bytes_max: int) -> CoordinatorResult:
    return CoordinatorResult(now_ns=1, now_ms=2, bytes_max=bytes_max)


def test_records_that_just_fit_are_appended_in_order() -> None:
    result = turn_of(2 * SIZE - len(b"value"))
    result.append([RECORD, TOMBSTONE])
    assert result.records == [RECORD, TOMBSTONE]
    assert result.bytes_left == 0


def test_records_that_do_not_fit_together_are_all_rejected() -> None:
    result = turn_of(2 * SIZE - 1)
    with pytest.raises(BatchFullError):
        result.append([RECORD, RECORD])
    assert (result.records, result.bytes_left) == ([], 2 * SIZE - 1)


def test_second_append_can_use_the_remaining_bytes() -> None:
    result = turn_of(2 * SIZE)
    result.append([RECORD])
    with pytest.raises(BatchFullError):
        result.append([RECORD, RECORD])
    result.append([RECORD])
    assert result.records == [RECORD, RECORD]


def test_size_of_a_tombstone_is_its_key_and_its_framing() -> None:
    with pytest.raises(BatchFullError):
        turn_of(_RECORD_OVERHEAD + 2).append([TOMBSTONE])
    turn_of(_RECORD_OVERHEAD + 3).append([TOMBSTONE])


def test_empty_append_always_fits() -> None:
    result = turn_of(0)
    result.append([])
    assert result.append_some([]) == 0
    assert result.records == []


@pytest.mark.parametrize("room", range(5))
def test_append_some_appends_the_first_records_that_fit(room: int) -> None:
    records: list[KeyValue] = [(b"%03d" % number, b"value") for number in range(3)]
    result = turn_of(room * SIZE + SIZE - 1)
    fitting = min(room, 3)
    assert result.append_some(records) == fitting
    assert result.records == records[:fitting]


def test_append_some_stops_at_the_first_record_that_does_not_fit() -> None:
    result = turn_of(2 * SIZE)
    assert result.append_some([RECORD, (b"key", b"v" * SIZE), TOMBSTONE]) == 1
    assert result.records == [RECORD]


def test_answers_are_kept_in_order() -> None:
    result = turn_of(0)
    result.respond("first", 25)
    result.respond("second", None)
    assert result.responses == [("first", 25), ("second", None)]
