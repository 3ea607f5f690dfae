"""Rebalances: the choice of leader and protocol, and the wait for members."""

from functools import partial

import pytest

from pykafka_core.coordinator.group.classic.group import GENERATION_MAX
from pykafka_core.coordinator.group.classic.join import PENDING_MEMBERS_MAX
from pykafka_core.coordinator.group.classic.session import NEW_MEMBER_TIMEOUT_MS, touch
from pykafka_core.coordinator.group.member_memory import Share
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult, Waiter
from pykafka_core.protocol.messages import JoinGroupResponse
from tests.coordinator.classic.world import (
    CHANGED,
    MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    World,
    assigned,
    beat,
    code_of,
    join,
    joined_as,
    leave,
    sync,
)

DELAYED = SETTINGS._replace(initial_rebalance_delay_ms=3_000)


def protocols(*names: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, name.encode()) for name in names)


def test_only_the_leader_gets_the_metadata_of_all_members() -> None:
    world = World()
    world.stable("A")
    new = world.submit(join(client_id="B", protocols=CHANGED))
    leader = world.submit(join(world.group.leader_id or ""))
    responses = [joined_as(world.responses[one]) for one in (leader, new)]
    assert [len(response.members) for response in responses] == [2, 0]
    assert {response.leader for response in responses} == {responses[0].member_id}
    assert {response.generation_id for response in responses} == {2}
    metadata = [member.metadata for member in responses[0].members]
    assert metadata == [RANGE[0][1], CHANGED[0][1]]


def test_elected_protocol_is_supported_by_all_and_preferred_by_most() -> None:
    world = World(DELAYED)
    wishes = [("a", "b", "c"), ("b", "a", "x"), ("b", "c", "a")]
    waiters = [world.submit(join(protocols=protocols(*wish))) for wish in wishes]
    world.pass_ms(6_000)
    assert {joined_as(world.responses[one]).protocol_name for one in waiters} == {"b"}
    assert code_of(world.ask(join(protocols=protocols("c")))) == 23, "not all support it"


def test_protocol_named_twice_counts_once() -> None:
    world = World()
    (leader,) = world.stable("A")
    new = world.submit(join(protocols=protocols("range", "range")))
    world.submit(join(leader))
    assert joined_as(world.responses[new]).protocol_name == "range"


def test_first_rebalance_waits_for_more_members_and_is_extended_when_they_join() -> None:
    world = World(DELAYED)
    first = world.submit(join())
    world.pass_ms(2_000)
    second = world.submit(join())
    world.pass_ms(3_000)
    assert not world.responses, "the second one extended it"
    world.pass_ms(1_000)
    assert {joined_as(world.responses[one]).generation_id for one in (first, second)} == {1}


def test_a_first_rebalance_is_extended_up_to_the_rebalance_timeout() -> None:
    world = World(DELAYED)
    first = world.submit(join(rebalance_timeout_ms=7_000))
    for _ in range(7):
        assert first not in world.responses
        world.submit(join(rebalance_timeout_ms=7_000))
        world.pass_ms(1_000)
    assert first in world.responses


@pytest.mark.parametrize("timeout_ms", [-1, -(2**31), 0])
def test_negative_rebalance_timeout_is_zero(timeout_ms: int) -> None:
    world = World()
    (leader,) = world.stable("A", rebalance_timeout_ms=timeout_ms)
    new = world.submit(join(rebalance_timeout_ms=timeout_ms))
    world.pass_ms(0)
    assert joined_as(world.responses[new]).leader != leader


def test_rebalance_waits_for_a_member_no_longer_than_the_rebalance_timeout() -> None:
    world = World()
    late, punctual = world.stable("A", "B")
    waiter = world.submit(join(punctual, protocols=CHANGED))
    for _ in range(REBALANCE_MS // 5_000):
        assert waiter not in world.responses
        world.submit(beat(late, 2))
        world.pass_ms(5_000)
    response = joined_as(world.responses[waiter])
    assert (response.leader, len(response.members)) == (punctual, 1)
    assert code_of(world.ask(beat(late, 3))) == 25


def test_members_that_do_not_sync_are_removed_after_the_rebalance_timeout() -> None:
    world = World()
    leader, follower = world.joined("A", "B")
    waiter = world.submit(sync(follower, 2))
    for _ in range(REBALANCE_MS // 5_000):
        assert waiter not in world.responses
        world.submit(beat(leader, 2))
        world.pass_ms(5_000)
    assert code_of(world.responses[waiter]) == 27
    assert list(world.group.members) == [follower]


def test_rebalance_fails_pending_syncs() -> None:
    world = World()
    _, follower = world.joined("A", "B")
    waiter = world.submit(sync(follower, 2))
    world.submit(join())
    assert code_of(world.responses[waiter]) == 27


def test_second_request_of_a_member_replaces_the_first() -> None:
    world = World()
    leader, follower = world.joined("A", "B")
    syncs = [world.submit(sync(follower, 2)) for _ in range(2)]
    assert code_of(world.responses[syncs[0]]) == 27
    world.submit(sync(leader, 2, {follower: b"assigned"}))
    assert assigned(world.responses[syncs[1]]) == b"assigned"
    joins = [world.submit(join(follower, protocols=CHANGED)) for _ in range(2)]
    assert code_of(world.responses[joins[0]]) == 27
    world.submit(join(leader))
    assert joined_as(world.responses[joins[1]]).generation_id == 3


def test_every_member_gets_its_part_of_the_assignment_and_unknown_ids_are_ignored() -> None:
    world = World()
    leader, follower, idle = world.joined("A", "B", "C")
    waiters = [world.submit(sync(one, 3)) for one in (follower, idle)]
    parts = {leader: b"1", follower: b"2", "stranger": b"3"}
    waiters.append(world.submit(sync(leader, 3, parts)))
    assert [assigned(world.responses[one]) for one in waiters] == [b"2", b"", b"1"]
    world.submit(sync(follower, 3, {follower: b"a follower's"}))
    assert world.group.members[follower].assignment == b"2"


def test_assignment_that_cannot_be_stored_fails_and_the_group_rebalances() -> None:
    world = World(bytes_max=2_000)
    leader, follower = world.joined("A", "B")
    waiters = [
        world.submit(sync(follower, 2)),
        world.submit(sync(leader, 2, {leader: bytes(3_000)})),
    ]
    assert [code_of(world.responses[one]) for one in waiters] == [-1, -1]
    assert world.group.state.value == "PreparingRebalance"
    assert [code_of(world.ask(beat(one, 2))) for one in (leader, follower)] == [27, 27]


# Sessions.


def test_a_silent_member_is_removed_and_the_others_rebalance() -> None:
    world = World()
    silent, alive = world.stable("A", "B")
    world.pass_ms(SESSION_MS - 1)
    assert code_of(world.ask(beat(alive, 2))) == 0
    world.pass_ms(1)
    assert code_of(world.ask(beat(alive, 2))) == 27
    assert code_of(world.ask(beat(silent, 2))) == 25


def test_a_commit_keeps_a_member_alive() -> None:
    world = World()
    (member,) = world.stable("A")

    def commit(state: GroupState, waiter: Waiter, result: CoordinatorResult) -> None:
        touch(state, state.groups["g"], member, result.now_ns)
        touch(state, state.groups["g"], "a stranger", result.now_ns)
        result.respond(waiter, 0)

    world.pass_ms(SESSION_MS - 1)
    world.submit(commit)
    world.pass_ms(SESSION_MS - 1)
    assert code_of(world.ask(beat(member, 1))) == 0


def test_waiting_member_needs_no_heartbeats() -> None:
    world = World()
    leader, follower = world.joined("A", "B")
    world.submit(sync(follower, 2))
    for _ in range(5):
        world.pass_ms(SESSION_MS - 1)
        world.submit(beat(leader, 2))
    world.submit(sync(leader, 2))
    assert code_of(world.ask(beat(follower, 2))) == 0
    world.pass_ms(SESSION_MS)
    assert not world.group.has_members, "its session began again with the response"


def test_new_member_that_waits_is_removed_after_five_minutes() -> None:
    world = World()
    (old,) = world.stable("A", rebalance_timeout_ms=NEW_MEMBER_TIMEOUT_MS * 2)
    waiter = world.submit(join())
    for _ in range(NEW_MEMBER_TIMEOUT_MS // 5_000):
        assert waiter not in world.responses
        world.submit(beat(old, 1))
        world.pass_ms(5_000)
    assert code_of(world.responses[waiter]) == 25


def test_heartbeats_keep_one_deadline_each() -> None:
    world = World()
    members = world.stable("A", "B")
    before = len(world.state.deadlines)
    for _ in range(1_000):
        world.pass_ms(1)
        for member in members:
            world.submit(beat(member, 2))
    assert len(world.state.deadlines) == before


# Member ids that clients receive before they join (KIP-394).


def test_member_joins_with_the_issued_id() -> None:
    world = World()
    given = world.ask(join(api_version=9, client_id="app"))
    assert isinstance(given, JoinGroupResponse)
    assert (given.error_code, given.member_id) == (79, "app-uuid1")
    assert joined_as(world.ask(join(given.member_id, api_version=9))).member_id == given.member_id


def test_rebalance_waits_for_an_issued_member_id_up_to_its_session_timeout() -> None:
    world = World()
    (leader,) = world.stable("A", session_timeout_ms=REBALANCE_MS)
    world.submit(join(api_version=4))
    waiter = world.submit(join(leader))
    world.pass_ms(SESSION_MS - 1)
    assert waiter not in world.responses
    world.pass_ms(1)
    assert joined_as(world.responses[waiter]).generation_id == 2
    assert not world.group.pending_members


def test_client_can_leave_with_an_issued_member_id() -> None:
    world = World()
    given = world.ask(join(api_version=4))
    assert isinstance(given, JoinGroupResponse)
    assert world.ask(leave(given.member_id)) == (0,)
    assert world.is_quiet
    assert code_of(world.ask(join(given.member_id, api_version=4))) == 25


def test_number_of_issued_member_ids_is_bounded() -> None:
    world = World()
    world.submit(join(api_version=4))
    share = Share(world.state.member_memory)
    world.group.pending_members |= {str(n): share for n in range(PENDING_MEMBERS_MAX - 1)}
    assert code_of(world.ask(join(api_version=4))) == 81
    assert code_of(world.ask(join(api_version=3))) == 0


def test_longest_client_id_makes_a_member_id_that_fits_into_a_string() -> None:
    world = World()
    response = joined_as(world.ask(join(client_id="\N{GRINNING FACE}" * 8_191)))
    assert len(response.member_id.encode()) < 2**15


# group.max.size.


def test_full_group_rejects_new_members_and_keeps_its_members() -> None:
    world = World(SETTINGS._replace(max_size=2))
    leader, _ = world.stable("A", "B")
    assert code_of(world.ask(join())) == 81
    assert code_of(world.ask(join(api_version=4))) == 81
    waiter = world.submit(join(leader))
    assert waiter not in world.responses


def test_loaded_group_that_is_too_large_rejects_the_last_to_join() -> None:
    world = World()
    ids = world.stable("A", "B", "C")
    loaded = World(SETTINGS._replace(max_size=2))
    loaded.records = world.records
    loaded = loaded.reload()
    assert loaded.group.state.value == "PreparingRebalance"
    waiters = [loaded.submit(join(one)) for one in ids]
    assert [code_of(loaded.responses[one]) for one in waiters] == [0, 0, 81]
    assert list(loaded.group.members) == ids[:2]


# Leaving.


def test_pending_requests_of_a_leaving_member_fail() -> None:
    world = World()
    leader, follower = world.joined("A", "B")
    syncing = world.submit(sync(follower, 2))
    world.submit(leave(follower))
    assert code_of(world.responses[syncing]) == 25
    joining = world.submit(join(client_id="C"))
    new = next(reversed(world.group.members))
    world.submit(leave(new))
    assert code_of(world.responses[joining]) == 25
    assert list(world.group.members) == [leader]


def test_each_of_many_leaving_members_gets_its_result() -> None:
    world = World()
    first, second, _ = world.stable("A", "B", "C")
    assert world.ask(leave(first, "stranger", second, first)) == (0, 25, 0, 25)


def test_group_without_members_is_stored_as_empty() -> None:
    world = World()
    ids = world.stable("A", "B")
    world.submit(leave(*ids))
    group = world.reload().group
    assert (group.state.value, group.generation_id, group.protocol_type) == ("Empty", 3, "consumer")
    assert group.empty_since_ms == world.now_ms
    assert world.is_quiet


def test_a_new_group_is_stored_before_its_first_member_is_answered() -> None:
    world = World(bytes_max=10)
    assert world.ask(join(api_version=4)) == BatchFullError.code
    assert not world.state.groups
    world = World()
    world.submit(join(api_version=4))
    assert world.reload().group.state.value == "Empty"


def test_reason_is_truncated() -> None:
    world = World()
    (member,) = world.stable("A", reason="x" * 1_000)
    assert world.group.members[member].reason == "x" * 255
    world.submit(partial(leave(member)))
    assert world.group.rebalance_reason.startswith(f"{member} left")


def test_time_is_in_milliseconds_to_clients_and_in_nanoseconds_to_deadlines() -> None:
    world = World()
    (member,) = world.stable("A")
    key = world.group.members[member].session_key
    assert world.state.deadlines.get(key) == (world.now_ms + SESSION_MS) * MS


def test_generation_wraps_around_after_the_last_one_that_a_record_can_hold() -> None:
    world = World()
    (leader,) = world.stable("A")
    world.group.generation_id = GENERATION_MAX
    world.submit(join(leader, protocols=CHANGED))
    assert world.group.generation_id == 1
