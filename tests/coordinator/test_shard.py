"""The records of a turn fit into one batch: all records of an operation are added, or none."""

import pytest

from pykafka_core.coordinator.shard import _RECORD_OVERHEAD, KeyValue, Turn, TurnFullError

RECORD: KeyValue = (b"key", b"value")
SIZE = _RECORD_OVERHEAD + 8
TOMBSTONE: KeyValue = (b"key", None)


def turn_of(bytes_max: int) -> Turn:
    return Turn(now_ns=1, now_ms=2, bytes_max=bytes_max)


def test_records_that_just_fit_are_appended_in_order() -> None:
    turn = turn_of(2 * SIZE - len(b"value"))
    turn.append([RECORD, TOMBSTONE])
    assert turn.records == [RECORD, TOMBSTONE]
    assert turn.bytes_left == 0


def test_records_that_do_not_fit_together_are_all_rejected() -> None:
    turn = turn_of(2 * SIZE - 1)
    with pytest.raises(TurnFullError):
        turn.append([RECORD, RECORD])
    assert (turn.records, turn.bytes_left) == ([], 2 * SIZE - 1)


def test_second_append_can_use_the_remaining_bytes() -> None:
    turn = turn_of(2 * SIZE)
    turn.append([RECORD])
    with pytest.raises(TurnFullError):
        turn.append([RECORD, RECORD])
    turn.append([RECORD])
    assert turn.records == [RECORD, RECORD]


def test_size_of_a_tombstone_is_its_key_and_its_framing() -> None:
    with pytest.raises(TurnFullError):
        turn_of(_RECORD_OVERHEAD + 2).append([TOMBSTONE])
    turn_of(_RECORD_OVERHEAD + 3).append([TOMBSTONE])


def test_empty_append_always_fits() -> None:
    turn = turn_of(0)
    turn.append([])
    assert turn.append_some([]) == 0
    assert turn.records == []


@pytest.mark.parametrize("room", range(5))
def test_append_some_appends_the_first_records_that_fit(room: int) -> None:
    records: list[KeyValue] = [(b"%03d" % number, b"value") for number in range(3)]
    turn = turn_of(room * SIZE + SIZE - 1)
    fitting = min(room, 3)
    assert turn.append_some(records) == fitting
    assert turn.records == records[:fitting]


def test_append_some_stops_at_the_first_record_that_does_not_fit() -> None:
    turn = turn_of(2 * SIZE)
    assert turn.append_some([RECORD, (b"key", b"v" * SIZE), TOMBSTONE]) == 1
    assert turn.records == [RECORD]


def test_answers_are_kept_in_order() -> None:
    turn = turn_of(0)
    turn.respond("first", 25)
    turn.respond("second", None)
    assert turn.responses == [("first", 25), ("second", None)]
