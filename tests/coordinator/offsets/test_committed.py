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


def test_it_holds_what_it_was_given() -> None:
    made: Any = Committed(**ALL)
    assert {name: getattr(made, name) for name in ALL} == ALL
    short = Committed(5, 3, "m", 1_000)
    assert (short.expire_timestamp_ms, short.topic_id) == (NO_EXPIRY, NO_TOPIC_ID)


@pytest.mark.parametrize("name", ALL)
def test_each_field_tells_two_apart(name: str) -> None:
    other: Any = ALL | {name: {"metadata": "n", "topic_id": bytes(16)}.get(name, 9)}
    one, same, differs = Committed(**ALL), Committed(**ALL), Committed(**other)
    assert (one == same, hash(one) == hash(same)) == (True, True)
    assert one != differs
    assert f"{name}={ALL[name]!r}" in repr(one)


def test_it_equals_its_copies_and_no_tuple() -> None:
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
def test_what_cannot_be_stored_is_refused(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Committed(**ALL | {name: value})


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Committed(5, 3, "m", 1_000).offset = 6


def test_a_million_are_small_and_cost_the_collector_nothing() -> None:
    one = Committed(5, 3, "m", 1_000)
    assert sys.getsizeof(one) <= 80
    assert not gc.is_tracked(one)
