"""Static members (KIP-345): a client that rejoins with its instance id replaces the member, and the
old member id is fenced.
"""

import pytest

from pykafka_core.protocol.messages import JoinGroupResponse
from tests.coordinator.classic.world import (
    CHANGED,
    REBALANCE_MS,
    SESSION_MS,
    World,
    assigned,
    beat,
    code_of,
    join,
    joined_as,
    leave,
    sync,
)


def static_group() -> tuple[World, str, str]:
    """Return a stable group of a leader with instance id "a" and a follower with "b"."""
    world = World()
    leader = joined_as(world.ask(join(instance="a"))).member_id
    waiter = world.submit(join(instance="b"))
    world.submit(join(leader, "a"))
    follower = joined_as(world.responses[waiter]).member_id
    world.submit(sync(leader, 2, {leader: b"1", follower: b"2"}, instance="a"))
    world.submit(sync(follower, 2, instance="b"))
    assert world.group.state.value == "Stable"
    return world, leader, follower


def test_static_member_joins_at_once_with_an_id_that_starts_with_its_instance_id() -> None:
    response = joined_as(World().ask(join(instance="node-7", api_version=9)))
    assert response.member_id == "node-7-uuid1"


@pytest.mark.parametrize("version", [5, 9])
def test_returning_static_follower_is_replaced_without_a_rebalance(version: int) -> None:
    world, leader, old = static_group()
    response = joined_as(world.ask(join(instance="b", api_version=version)))
    assert (response.generation_id, response.leader, response.members) == (2, leader, [])
    assert not response.skip_assignment
    assert code_of(world.ask(beat(leader, 2, "a"))) == 0
    assert assigned(world.ask(sync(response.member_id, 2, instance="b"))) == b"2"
    assert code_of(world.ask(beat(old, 2, "b"))) == 82


def test_returning_static_leader_leads_but_does_not_assign() -> None:
    world, _, _ = static_group()
    response = joined_as(world.ask(join(instance="a", api_version=9)))
    assert response.skip_assignment
    assert response.leader == response.member_id == world.group.leader_id
    assert len(response.members) == 2


def test_old_client_gets_the_former_member_id_as_leader_when_it_returns() -> None:
    world, old, _ = static_group()
    response = joined_as(world.ask(join(instance="a", api_version=8)))
    assert (response.leader, response.members, response.skip_assignment) == (old, [], False)
    assert world.group.leader_id == response.member_id


def test_returning_static_member_is_stored() -> None:
    world, leader, _ = static_group()
    new = joined_as(world.ask(join(instance="b"))).member_id
    loaded = world.reload()
    assert set(loaded.group.members) == {leader, new}
    assert loaded.group.static_members == {"a": leader, "b": new}
    assert code_of(loaded.ask(beat(new, 2, "b"))) == 0


def test_static_member_that_cannot_be_stored_does_not_return() -> None:
    world, _, old = static_group()
    world.bytes_max = 10
    assert code_of(world.ask(join(instance="b"))) == -1
    assert code_of(world.ask(beat(old, 2, "b"))) == 0


def test_static_member_that_returns_with_another_protocol_preference_causes_a_rebalance() -> None:
    world = World()
    both = (("x", b""), ("y", b""))
    leader = joined_as(world.ask(join(instance="a", protocols=both))).member_id
    world.submit(sync(leader, 1, instance="a"))
    waiter = world.submit(join(instance="a", protocols=both[::-1]))
    response = joined_as(world.responses[waiter])
    assert (response.generation_id, response.protocol_name) == (2, "y")


def test_static_member_that_returns_with_other_metadata_causes_no_rebalance() -> None:
    world, _, _ = static_group()
    assert joined_as(world.ask(join(instance="b", protocols=CHANGED))).generation_id == 2


def test_static_member_that_returns_before_the_assignment_causes_a_rebalance() -> None:
    world = World()
    old = joined_as(world.ask(join(instance="a"))).member_id
    waiter = world.submit(sync(old, 1, instance="a"))
    assert world.group.state.value == "Stable"
    world = World()
    leader = joined_as(world.ask(join(instance="a"))).member_id
    joining = world.submit(join(instance="b"))
    world.submit(join(leader, "a"))
    follower = joined_as(world.responses[joining]).member_id
    waiter = world.submit(sync(follower, 2, instance="b"))
    back = world.submit(join(instance="b"))
    assert code_of(world.responses[waiter]) == 82
    assert back not in world.responses
    assert code_of(world.ask(beat(leader, 2, "a"))) == 27


def test_a_waiting_member_that_is_replaced_is_fenced() -> None:
    world, _, old = static_group()
    first = world.submit(join(old, "b", protocols=CHANGED))
    second = world.submit(join(instance="b", protocols=CHANGED))
    fenced = world.responses[first]
    assert isinstance(fenced, JoinGroupResponse)
    assert (fenced.error_code, fenced.member_id) == (82, old)
    assert second not in world.responses


def test_a_rebalance_keeps_static_members_that_have_not_joined() -> None:
    world, leader, follower = static_group()
    waiter = world.submit(join(leader, "a"))
    for _ in range(REBALANCE_MS // 5_000):
        world.submit(beat(follower, 2, "b"))
        world.pass_ms(5_000)
    assert len(joined_as(world.responses[waiter]).members) == 2


def test_rebalance_that_no_static_member_joins_lasts_until_their_sessions_expire() -> None:
    world, leader, follower = static_group()
    world.submit(join())
    new = next(reversed(world.group.members))
    world.submit(leave(new))
    assert world.group.state.value == "PreparingRebalance"
    for _ in range(2 * REBALANCE_MS // 5_000):
        world.submit(beat(leader, 2, "a"))
        world.submit(beat(follower, 2, "b"))
        world.pass_ms(5_000)
    assert world.group.generation_id == 2
    world.pass_ms(SESSION_MS)
    assert (world.group.state.value, world.group.generation_id) == ("Empty", 3)


def test_an_administrator_removes_a_member_by_its_instance_id() -> None:
    world, leader, follower = static_group()
    assert world.ask(leave(("", "b"), ("", "unknown"), (leader, "b"))) == (0, 25, 25)
    assert list(world.group.members) == [leader]
    assert code_of(world.ask(beat(follower, 2, "b"))) == 25


@pytest.mark.parametrize("operation", ["join", "sync", "beat", "leave"])
def test_member_id_without_the_instance_id_is_fenced(operation: str) -> None:
    world, _, _ = static_group()
    asked = {
        "join": join("other", "b"),
        "sync": sync("other", 2, instance="b"),
        "beat": beat("other", 2, "b"),
        "leave": leave(("other", "b")),
    }[operation]
    response = world.ask(asked)
    assert response == ((82,) if operation == "leave" else 82)


def test_issued_member_id_cannot_be_used_by_a_static_member() -> None:
    world = World()
    given = world.ask(join(api_version=4))
    assert isinstance(given, JoinGroupResponse)
    assert code_of(world.ask(join(given.member_id, "a", api_version=5))) == -1


def test_static_member_that_returns_before_its_sync_still_has_to_sync() -> None:
    world = World()
    leader = joined_as(world.ask(join(instance="a"))).member_id
    waiter = world.submit(join(instance="b"))
    world.submit(join(leader, "a"))
    assert code_of(world.responses[waiter]) == 0
    world.submit(sync(leader, 2, instance="a"))
    new = joined_as(world.ask(join(instance="b"))).member_id
    for _ in range(REBALANCE_MS // 5_000):
        world.submit(beat(leader, 2, "a"))
        world.submit(beat(new, 2, "b"))
        world.pass_ms(5_000)
    assert list(world.group.members) == [leader]


def test_session_of_a_pending_sync_restarts_when_the_sync_fails() -> None:
    world = World()
    leader = joined_as(world.ask(join(instance="a"))).member_id
    world.submit(join(instance="b"))
    world.submit(join(leader, "a"))
    follower = world.group.static_members["b"]
    waiter = world.submit(sync(follower, 2, instance="b"))
    for _ in range(3):
        world.submit(beat(leader, 2, "a"))
        world.pass_ms(SESSION_MS - 1)
    world.submit(join(leader, "a", protocols=CHANGED))
    assert code_of(world.responses[waiter]) == 27
    world.pass_ms(SESSION_MS - 1)
    assert follower in world.group.members
    world.pass_ms(1)
    assert follower not in world.group.members
