"""The common prefix of stored offset keys is decoded once; the results are those of separate
decoding.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.coordinator.group.offsets.table import Committed
from pykafka_core.protocol import ProtocolError
from tests.coordinator.offsets.shard_world import ShardWorld, stored

NAMES = st.text("ab", max_size=2)
PLACES = st.tuples(NAMES, NAMES, st.integers(-(2**31), 2**31 - 1))


def replayed(*records: tuple[bytes, bytes | None]) -> dict[tuple[str, str, int], Committed]:
    world = ShardWorld()
    for record in records:
        world._replay((-1, *record))
    return world.rows()


@given(st.lists(st.tuples(PLACES, st.integers(0, 99)), max_size=20))
def test_each_offset_is_replayed_for_its_group_and_partition(
    commits: list[tuple[tuple[str, str, int], int]],
) -> None:
    records = [
        OffsetRecords(group_id, topic).of(partition, stored(offset))
        for (group_id, topic, partition), offset in commits
    ]
    assert replayed(*records) == {place: stored(offset) for place, offset in commits}


def test_trailing_bytes_of_a_key_are_ignored() -> None:
    key, value = OffsetRecords("g", "t").of(3, stored(5))
    assert replayed((key + b"\0\0\0\7", value)) == {("g", "t", 3): stored(5)}


@pytest.mark.parametrize("length", [2, 3, 5, 8, 11])
def test_truncated_key_is_rejected(length: int) -> None:
    key, value = OffsetRecords("g", "t").of(3, stored(5))
    assert length < len(key)
    with pytest.raises(ProtocolError):
        replayed((key[:length], value))
