"""Offsets of a deleted topic are ignored, even before they are removed."""

import pytest

from pykafka_core.coordinator.group.explain import view_group
from pykafka_core.coordinator.group.offsets.table import NO_TOPIC_ID
from pykafka_core.coordinator.group.summary import summarize
from tests.coordinator.classic.world import MS
from tests.coordinator.offsets.shard_world import ShardWorld, at, commit, stored

OLD_ID, NEW_ID = b"o" * 16, b"n" * 16


def world_with(committed_id: bytes) -> ShardWorld:
    """Return a world in which a group has an offset in ``t``, with or without a topic id."""
    world = ShardWorld(topic_id=OLD_ID)
    world.write(-1, ("g", "t", 0), stored(5, committed_id))
    assert world.fetched("g").offsets["t"][0].offset == 5
    return world


@pytest.mark.parametrize("current", [NEW_ID, None], ids=["recreated", "deleted"])
@pytest.mark.parametrize("committed", [OLD_ID, NO_TOPIC_ID], ids=["with id", "without id"])
def test_offset_of_a_deleted_topic_is_ignored(committed: bytes, current: bytes | None) -> None:
    world = world_with(committed)
    world.topic_id = current
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    assert world.rows(), "nothing was removed yet"
    assert world.fetched("g").offsets == {}
    assert world.fetched("g", ["t"]).offsets == {}
    assert [group.offsets for group in summarize(world.shard, 0, 100).groups] == [()]
    view = view_group(world.shard, "g", world.now_ms * MS, world.now_ms)
    assert view is not None
    assert list(view.offsets) == []


def test_offset_of_another_topic_of_the_same_name_is_ignored() -> None:
    """An earlier leader of the shard may store an offset before it applies the deletion."""
    world = world_with(OLD_ID)
    world.topic_id = NEW_ID
    assert world.fetched("g").offsets == {}


def test_offset_of_a_recreated_topic_is_used() -> None:
    world = world_with(OLD_ID)
    world.topic_id = NEW_ID
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    assert world.ask(commit(at(7, topic_id=NEW_ID))) is None
    assert world.fetched("g").offsets["t"][0].offset == 7
    world.pass_ms(10)
    assert world.fetched("g").offsets["t"][0].offset == 7


def test_offset_of_an_unknown_topic_is_used() -> None:
    """The metadata of a new coordinator may lag behind the one that stored the offset."""
    world = world_with(OLD_ID)
    world.topic_id = None
    assert world.fetched("g").offsets["t"][0].offset == 5


def test_offsets_of_all_groups_in_a_deleted_topic_are_removed() -> None:
    world = ShardWorld(topic_id=OLD_ID)
    groups = [f"g{number}" for number in range(20)]
    for group_id in groups:
        offsets = at(5, topic_id=OLD_ID), at(5, topic="kept", topic_id=OLD_ID)
        assert world.ask(commit(*offsets, group_id=group_id)) is None
    world.write(1, ("in a transaction", "t", 0), stored(5, OLD_ID))
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    world.pass_ms(10)
    assert {topic for _, topic, _ in world.rows()} == {"kept"}
    assert len(world.rows()) == len(groups)
    assert world.pending() == set()


def test_commit_stores_only_offsets_of_the_existing_topic() -> None:
    world = ShardWorld(topic_id=NEW_ID)
    deleted = at(5, topic="old", topic_id=OLD_ID)
    assert world.ask(commit(deleted, at(6, topic_id=NEW_ID))) == {OLD_ID}
    assert {topic: one.offset for (_, topic, _), one in world.rows().items()} == {"t": 6}


def test_commit_with_a_retention_belongs_to_the_recreated_topic() -> None:
    """Its record has no topic id; it was removed with the offsets of the deleted topic."""
    world = world_with(OLD_ID)
    world.topic_id = NEW_ID
    world.shard.topics_deleted({"t": OLD_ID}, world._turn())
    day_ms = 24 * 3_600_000
    assert world.ask(commit(at(7, topic_id=NEW_ID), retention_ms=day_ms, api_version=3)) is None
    assert world.fetched("g").offsets["t"][0].offset == 7
    world.pass_ms(10)
    for one in (world, world.reload(NEW_ID)):
        assert one.fetched("g").offsets["t"][0].offset == 7
        one.topic_id = None
        one.shard.topics_deleted({"t": NEW_ID}, one._turn())
        one.pass_ms(10)
        assert one.rows() == {}
