"""LeaveGroup in a consumer group, by which administrators remove members."""

from functools import partial

from pykafka_core.coordinator.group.classic.leave import leave_group
from pykafka_core.coordinator.shard import BatchFullError
from pykafka_core.errors import (
    NONE,
    FencedInstanceIdError,
    UnknownMemberIdError,
)
from pykafka_core.protocol.messages import LeaveGroupRequest
from tests.coordinator.group.consumer.world import GROUP, Client, World, settle, topic_id

Identity = LeaveGroupRequest.MemberIdentity


def left(world: World, *identities: Identity) -> object:
    return world.ask(partial(leave_group, GROUP, identities))


def test_members_are_removed_by_either_id() -> None:
    world = World()
    world.join("a")
    world.join("b", instance_id="i")
    rest = Client(world, "c")
    codes = left(world, Identity(member_id="a"), Identity(group_instance_id="i"))
    assert codes == (NONE, NONE)
    assert set(world.group.members) == {"c"}
    settle([rest])
    assert rest.owned == {topic_id("t"): frozenset(range(6))}


def test_each_invalid_identity_gets_its_error_code() -> None:
    world = World()
    world.join("a", instance_id="i")
    codes = left(
        world,
        Identity(member_id="x"),
        Identity(group_instance_id="x"),
        Identity(member_id="x", group_instance_id="i"),
        Identity(),
        Identity(member_id="a"),
        Identity(member_id="a", group_instance_id="i"),
    )
    unknown, fenced = UnknownMemberIdError.code, FencedInstanceIdError.code
    assert codes == (unknown, unknown, fenced, unknown, NONE, NONE)
    assert not world.group.has_members


def test_unknown_member_changes_nothing() -> None:
    world = World()
    world.join("a")
    stored = len(world.records)
    assert left(world, Identity(member_id="x")) == (UnknownMemberIdError.code,)
    assert len(world.records) == stored


def test_tombstones_that_do_not_fit_remove_no_member() -> None:
    world = World()
    world.join("a")
    world.bytes_max = 10
    assert left(world, Identity(member_id="a")) == BatchFullError.code
    assert set(world.group.members) == {"a"}
