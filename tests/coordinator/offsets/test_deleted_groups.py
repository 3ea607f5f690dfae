"""DeleteGroups is checked once: it removes a group with all its offsets, or changes nothing."""

from functools import partial

import pytest

from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.errors import GroupIdNotFoundError
from tests.coordinator.offsets.shard_world import ShardWorld, at, commit, stored

COUNT, IN_A_TURN = 3_500, 1_000


def begin(world: ShardWorld) -> CoordinatorResult:
    """Start the deletion of group ``g``."""
    result = world._turn()
    delete_group("g", world.shard, "deletion", result)
    world._take(result)
    return result


def run(world: ShardWorld) -> list[CoordinatorResult]:
    """Run turns until the deletion has a response."""
    turns: list[CoordinatorResult] = []
    while not turns or not turns[-1].responses:
        world.now_ms += 1
        turns.append(world._turn())
        world.shard.run_due(turns[-1])
        world._take(turns[-1])
    return turns


@pytest.fixture
def world() -> ShardWorld:
    """A shard whose group has more offsets than a turn removes, one of them in a transaction."""
    world = ShardWorld(bytes_max=1_000_000)
    assert world.ask(commit(*(at(5, partition=number) for number in range(COUNT)))) is None
    world.write(1, ("g", "t", COUNT), stored(6))
    return world


def test_deletion_is_answered_after_the_last_tombstone(world: ShardWorld) -> None:
    first = begin(world)
    assert first.responses == []
    assert world.ask(partial(delete_group, "g")) == GroupIdNotFoundError.code
    turns = run(world)
    assert turns[-1].responses == [("deletion", "g")]
    assert max(len(result.records) for result in [first, *turns]) <= IN_A_TURN + 1
    world.end(1, committed=True)
    assert world.rows() == world.reload().rows() == {}
    assert world.reload().shard.groups == {}


def test_few_offsets_are_removed_in_one_turn() -> None:
    world = ShardWorld()
    assert world.ask(commit(at(5))) is None
    assert world.ask(partial(delete_group, "g")) == "g"
    assert world.reload().rows() == {}


def test_new_group_with_the_same_id_keeps_only_its_own_offsets(world: ShardWorld) -> None:
    begin(world)
    assert world.fetched("g").offsets == {}
    assert world.ask(commit(at(7, partition=COUNT - 1), at(8, partition=0))) is None
    run(world)
    offsets = {partition: one.offset for (_, _, partition), one in world.rows().items()}
    assert offsets == {COUNT - 1: 7, 0: 8}
    assert world.reload().rows() == world.rows()


def test_offsets_left_by_a_crash_belong_to_a_group(world: ShardWorld) -> None:
    begin(world)
    loaded = world.reload()
    assert len(loaded.rows()) > IN_A_TURN
    assert set(loaded.shard.groups) == {"g"}
    assert loaded.ask(partial(delete_group, "none")) == GroupIdNotFoundError.code
    begin(loaded)
    run(loaded)
    assert loaded.reload().rows() == {}
