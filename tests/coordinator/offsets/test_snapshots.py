"""Reading the offsets of a large group does not hold up the shard, and later commits do not change
the result.
"""

import pytest

from pykafka_core.coordinator.group.offsets.table import COPIED_MAX, Committed, OffsetTable
from tests.coordinator.offsets.shard_world import ShardWorld, stored
from tests.support.calls import counting_calls

MANY = 10 * COPIED_MAX

Copied = dict[str, dict[int, Committed]]


def world_with_offsets(topics: int, partitions: int = 1) -> ShardWorld:
    world = ShardWorld()
    for number in range(topics):
        for partition in range(partitions):
            world.shard.offsets.put("g", f"t{number}", partition, stored(number))
    return world


def snapshot(offsets: OffsetTable) -> tuple[object, Copied]:
    """Return a snapshot and its copy."""
    taken = offsets.snapshot("g", None)
    return taken, {topic: dict(partitions) for topic, partitions in taken.items()}


@pytest.mark.parametrize("named", [False, True])
def test_fetch_looks_at_no_single_offset_of_a_large_group(named: bool) -> None:
    world = world_with_offsets(MANY)
    topics = [f"t{number}" for number in range(MANY)] if named else None
    with counting_calls() as calls:
        fetched = world.fetched("g", topics)
    assert len(fetched.offsets) == MANY
    assert calls.count < COPIED_MAX


@pytest.mark.parametrize(("topics", "partitions"), [(MANY, 1), (1, MANY), (3, 2)])
def test_snapshot_outlives_changes_and_the_group(topics: int, partitions: int) -> None:
    offsets = world_with_offsets(topics, partitions).shard.offsets
    first, copied = snapshot(offsets)
    offsets.put("g", "t0", 0, stored(99))
    offsets.put("g", "new", 0, stored(99))
    second, copied_later = snapshot(offsets)
    offsets.remove("g", "t0", 1)
    offsets.remove("g", "t0", 0)
    offsets.put("g", "t0", 0, stored(100))
    offsets.detach("g", "waiter")
    (detached,) = offsets.detached
    detached.remove(list(detached.places()))
    assert first == copied
    assert second == copied_later
    assert copied["t0"][0] == stored(0)
    assert copied_later["t0"][0] == stored(99)


def test_commit_copies_the_offsets_of_its_topic_once() -> None:
    offsets = world_with_offsets(2, COPIED_MAX).shard.offsets
    snapshot(offsets)
    untouched = offsets.topics("g")["t1"]
    offsets.put("g", "t0", 0, stored(99))
    copied = offsets.topics("g")["t0"]
    offsets.put("g", "t0", 1, stored(99))
    assert offsets.topics("g")["t0"] is copied
    assert offsets.topics("g")["t1"] is untouched
