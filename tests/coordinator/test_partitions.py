"""The partition of a key is the one that Kafka's Java code computes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.partitions import coordinator_partition

CLUSTER = Path(__file__).parents[1] / "formats/golden/clean/expected/cluster.json"
MANY = 2**31 - 1
"""With this many partitions the remainder is the hash itself, except for one hash."""


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("é", 0xE9),
        ("\uffff", 0xFFFF),
        ("😀", 31 * 0xD83D + 0xDE00),
        ("a😀", 31 * 31 * 97 + 31 * 0xD83D + 0xDE00),
        ("\ud83d", 0xD83D),  # half of a surrogate pair
    ],
)
def test_hash_equals_that_of_java(key: str, number: int) -> None:
    assert coordinator_partition(key, MANY) == number


def test_negative_hash_counts_without_its_sign() -> None:
    # Its hashCode() is -609428141.
    key = "The quick brown fox jumps over the lazy dog"
    assert coordinator_partition(key, MANY) == 609428141


@pytest.mark.parametrize("count", [1, 3, 7, 50, MANY])
def test_smallest_hash_has_no_absolute_value_and_counts_as_0(count: int) -> None:
    # Its hashCode() is Integer.MIN_VALUE. 2 ** 31 would lead to another partition for all counts
    # except the first one.
    assert coordinator_partition("polygenelubricants", count) == 0


def units(key: str) -> list[int]:
    """Return UTF-16 code units, encoded one character at a time."""
    found: list[int] = []
    for number in map(ord, key):
        above = number - 0x10000
        found += [number] if above < 0 else [0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF)]
    return found


@given(st.text(), st.integers(1, 1_000))
def test_partition_of_any_key_follows_from_its_polynomial(key: str, count: int) -> None:
    codes = units(key)
    total = sum(unit * 31**power for power, unit in enumerate(reversed(codes)))
    signed = (total + 2**31) % 2**32 - 2**31
    expected = 0 if signed == -(2**31) else abs(signed)
    assert coordinator_partition(key, count) == expected % count


@pytest.mark.parametrize(
    ("topic", "name"), [("__consumer_offsets", "group"), ("__transaction_state", "TransactionalId")]
)
def test_kafka_stored_each_key_in_its_partition(topic: str, name: str) -> None:
    cluster: dict[str, Any] = json.loads(CLUSTER.read_text())
    places = {(row["key"][name], row["partition"]) for row in cluster[topic] if name in row["key"]}
    assert {partition for _, partition in places} == {f"{topic}-0", f"{topic}-1"}
    assert places == {(key, f"{topic}-{coordinator_partition(key, 2)}") for key, _ in places}
