"""What monitoring and `groups why` say of a consumer group."""

from pykafka_core.coordinator.group.summary import summarize
from pykafka_core.coordinator.group.why import explain, view_group
from tests.coordinator.group.consumer.world import GROUP, MS, World


def told(world: World) -> list[str]:
    view = view_group(world.shard, GROUP, world.now_ms * MS, world.now_ms)
    assert view is not None
    return explain(view)


def test_who_has_to_give_partitions_up_is_named() -> None:
    world = World()
    epoch = world.join("slow").member_epoch
    assert told(world) == ["It has been stable, generation 1, 1 member."]
    world.join("new")
    world.beat("slow", epoch)
    assert told(world) == [
        "Members of epoch 2 exchange partitions. To give some up: slow (127.0.0.1)."
    ]


def test_a_group_that_all_have_left_is_empty() -> None:
    world = World()
    world.join("only")
    world.leave("only")
    assert told(world) == ["Nobody has been a member: nothing consumes in this group."]


def test_both_kinds_of_groups_are_on_the_pages() -> None:
    world = World()
    world.join("a")
    (group,) = summarize(world.shard, 0, 100).groups
    assert (group.group_id, group.state, group.members_count) == (GROUP, "Stable", 1)
    assert summarize(world.shard, 1, 100).groups == []
