"""`Committed` is compiled: its limits are those of the stored numbers."""

import gc
import sys
from copy import copy
from typing import Any

import pytest

from pykafka_core.coordinator.group.offsets.table import NO_EXPIRY, NO_TOPIC_ID, Committed

ALL: dict[str, Any] = {
    "offset": 5,
    "leader_epoch": 3,
    "metadata": "m",
    "commit_timestamp_ms": 1_000,
    "expire_timestamp_ms": 2_000,
    "topic_id": bytes(range(16)),
}


def test_fields_hold_the_given_values() -> None:
    made: Any = Committed(**ALL)
    assert {name: getattr(made, name) for name in ALL} == ALL
    short = Committed(5, 3, "m", 1_000)
    assert (short.expire_timestamp_ms, short.topic_id) == (NO_EXPIRY, NO_TOPIC_ID)


@pytest.mark.parametrize("name", ALL)
def test_values_that_differ_in_one_field_are_unequal(name: str) -> None:
    other: Any = ALL | {name: {"metadata": "n", "topic_id": bytes(16)}.get(name, 9)}
    one, same, differs = Committed(**ALL), Committed(**ALL), Committed(**other)
    assert (one == same, hash(one) == hash(same)) == (True, True)
    assert one != differs
    assert f"{name}={ALL[name]!r}" in repr(one)


def test_copies_are_equal_and_tuples_are_not() -> None:
    one: Any = Committed(**ALL)
    assert one != tuple(ALL.values())
    assert copy(one) == one


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("offset", 2**63, OverflowError),
        ("leader_epoch", 2**31, OverflowError),
        ("metadata", None, TypeError),
        ("metadata", b"m", TypeError),
        ("topic_id", None, TypeError),
        ("topic_id", bytes(15), ValueError),
        ("topic_id", bytes(17), ValueError),
    ],
)
def test_invalid_value_is_rejected(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Committed(**ALL | {name: value})


def test_fields_are_read_only() -> None:
    with pytest.raises(AttributeError):
        Committed(5, 3, "m", 1_000).offset = 6


def test_object_is_small_and_not_tracked_by_the_collector() -> None:
    one = Committed(5, 3, "m", 1_000)
    assert sys.getsizeof(one) <= 80
    assert not gc.is_tracked(one)
