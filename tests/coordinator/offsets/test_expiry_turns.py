"""A turn removes a bounded number of offsets, however many a group has."""

from collections.abc import Callable

import pytest

from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.coordinator.group.offsets.table import NO_TOPIC_ID
from pykafka_core.coordinator.shard import BatchFullError
from tests.coordinator.classic.world import MS, SETTINGS
from tests.coordinator.offsets.shard_world import ShardWorld, at, commit, delete, stored

COUNT, IN_A_TURN, WEEK_MS = 3_500, 1_000, 7 * 24 * 3_600_000
OLD_ID, NEW_ID = b"o" * 16, b"n" * 16
SECOND_NS = 1_000 * MS


def _expired(world: ShardWorld) -> None:
    world.now_ms += 2 * WEEK_MS


def _deleted(world: ShardWorld) -> None:
    world.shard.topics_deleted({"t": NO_TOPIC_ID}, world._turn())
    world.now_ms += 2


@pytest.mark.parametrize("go", [_expired, _deleted])
def test_many_offsets_are_removed_in_many_turns(go: Callable[[ShardWorld], None]) -> None:
    world = ShardWorld(bytes_max=1_000_000)
    assert world.ask(commit(*(at(5, partition=number) for number in range(COUNT)))) is None
    go(world)
    removed = []
    while world.shard.groups:
        assert world.shard.deadlines.next_ns() <= world.now_ms * MS
        result = world._turn()
        world.shard.run_due(result)
        world._take(result)
        removed.append(len(result.records))
        world.now_ms += 2
    # The last record is the tombstone of the group.
    assert max(removed) <= IN_A_TURN + 1
    assert sum(removed) == COUNT + 1
    assert world.reload().rows() == world.rows() == {}


def test_each_turn_of_expiry_checks_some_topics() -> None:
    world = ShardWorld(bytes_max=1_000_000)
    offsets = (at(5, topic=f"t{number}") for number in range(COUNT))
    assert world.ask(commit(*offsets)) is None
    world.pass_ms(SETTINGS.offsets_retention_check_interval_ms)
    left = []
    while world.shard.offsets.search.groups:
        topics = world.shard.offsets.search.topics
        left.append(0 if topics is None else len(topics))
        world.pass_ms(1)
    # A topic with one offset counts twice.
    assert left[:3] == [COUNT - IN_A_TURN // 2 * turns for turns in (1, 2, 3)]
    assert len(world.rows()) == COUNT


def test_one_turn_removes_the_offsets_of_deleted_topics_among_many() -> None:
    world = ShardWorld(bytes_max=1_000_000)
    offsets = (at(5, topic=f"t{number}") for number in range(COUNT))
    assert world.ask(commit(*offsets)) is None
    world.shard.topics_deleted({"t0": NO_TOPIC_ID, f"t{COUNT - 1}": NO_TOPIC_ID}, world._turn())
    world.now_ms += 1
    result = world._turn()
    world.shard.run_due(result)
    assert len(result.records) == 2
    assert len(world.rows()) == COUNT - 2
    assert world.shard.deadlines.next_ns() > world.now_ms * MS + SECOND_NS


def test_deletions_do_not_delay_the_removal() -> None:
    world = ShardWorld(bytes_max=1_000_000)
    assert world.ask(commit(*(at(5, partition=number) for number in range(COUNT)))) is None
    for _ in range(COUNT):
        world.shard.topics_deleted({"t": NO_TOPIC_ID}, world._turn())
        if not world.rows():
            return
        world.pass_ms(0)
    raise AssertionError("the offsets are not removed")


def test_deletions_do_not_delay_expiry() -> None:
    world = ShardWorld(bytes_max=1_000_000)
    assert world.ask(commit(*(at(5, topic=f"t{number}") for number in range(COUNT)))) is None
    world.now_ms += 2 * WEEK_MS
    for number in range(COUNT):
        world.shard.topics_deleted({f"other{number}": OLD_ID}, world._turn())
        world.pass_ms(1)
        if not world.rows():
            return
    raise AssertionError("the search for expired offsets does not end")


def test_transaction_that_commits_during_a_search_adds_no_offsets_of_a_deleted_topic() -> None:
    world = ShardWorld(bytes_max=120, topic_id=NEW_ID)
    for partition in range(4):
        world.write(1, ("g", "t", partition), stored(5, OLD_ID))
    world.write(2, ("g", "t", 3), stored(6, NEW_ID))
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    world.pass_ms(1)
    world.end(1, committed=True)
    while world.shard.offsets.leaving:
        world.pass_ms(1)
    assert world.rows() == {}
    world.end(2, committed=True)
    assert set(world.rows()) == {("g", "t", 3)}


def test_offsets_that_do_not_fit_are_not_all_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ShardWorld(bytes_max=1_000_000)
    world.ask(commit(*(at(5, partition=number) for number in range(COUNT))))
    world.bytes_max, key = 1_000, OffsetRecords.key
    made: list[int] = []

    def noted(records: OffsetRecords, partition: int) -> bytes:
        made.append(partition)
        return key(records, partition)

    monkeypatch.setattr(OffsetRecords, "key", noted)
    every = (("t", number) for number in range(COUNT))
    assert world.ask(delete("g", *every)) == BatchFullError.code
    assert 10 < len(made) < 30
