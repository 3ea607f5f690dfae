"""The history of a group, and the explanation why it waits."""

from collections.abc import Iterable

import pytest

from pykafka_core.coordinator.group.classic.member import Protocols
from pykafka_core.coordinator.group.explain import (
    OFFSETS_MAX,
    GroupView,
    explain,
    view_group,
)
from pykafka_core.coordinator.group.history import EVENTS_MAX, TEXT_LENGTH_MAX, History, What
from pykafka_core.coordinator.group.offsets.table import Committed
from pykafka_core.coordinator.group.summary import summarize
from tests.coordinator.classic.world import (
    CHANGED,
    MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    World,
    beat,
    code_of,
    join,
    leave,
    sync,
)


def view(world: World) -> GroupView:
    found = view_group(world.state, "g", world.now_ms * MS, world.now_ms)
    assert found is not None
    return found


def kinds(world: World) -> list[What]:
    return [event.what for event in world.group.history]


def texts(world: World) -> str:
    return "\n".join(event.text for event in world.group.history)


def said(world: World) -> str:
    return "\n".join(explain(view(world)))


def waited_for(world: World) -> list[str]:
    return [one.member_id for one in view(world).members if one.is_waited_for]


def put(world: World, partitions: Iterable[int], group: str = "g") -> None:
    for partition in partitions:
        world.state.offsets.put(group, "t", partition, Committed(7, -1, "", 1))


def test_first_generation_is_recorded_step_by_step() -> None:
    world = World()
    (leader,) = world.stable("A", reason="first of all")
    assert kinds(world) == [What.REBALANCE, What.GENERATION, What.ASSIGNED]
    assert f"member {leader} joined: first of all" in texts(world)
    assert leader in texts(world).splitlines()[-1]


def test_missing_reason_leaves_no_colon() -> None:
    world = World()
    world.stable("A")
    assert not any(event.text.endswith((":", " ")) for event in world.group.history)


def test_rebalance_waits_for_old_members_until_the_rebalance_timeout() -> None:
    world = World()
    (old,) = world.stable("A")
    world.submit(join(client_id="B"))
    world.pass_ms(4_000)
    assert view(world).state == "PreparingRebalance"
    assert waited_for(world) == [old]
    assert view(world).due_in_ms == REBALANCE_MS - 4_000
    assert f"It waits for {old} (127.0.0.1) to rejoin" in said(world)
    assert "continues without them in 56.0 s" in said(world)


def test_member_that_did_not_rejoin_in_time_is_recorded_as_removed() -> None:
    world = World()
    (old,) = world.stable("A")
    world.submit(join(client_id="B", session_timeout_ms=REBALANCE_MS * 3))
    for _ in range(REBALANCE_MS // 5_000):  # it sends heartbeats, but does not join
        world.pass_ms(5_000)
        if old in world.group.members:
            world.submit(beat(old, 1))
    assert old not in world.group.members
    assert f"member {old} did not join again in time" in texts(world)
    assert What.REMOVED in kinds(world)
    assert "max.poll.interval.ms" in said(world)


def test_without_an_assignment_the_group_waits_for_the_leader() -> None:
    world = World()
    leader, follower = world.joined("A", "B")
    world.submit(sync(follower, world.group.generation_id))
    assert waited_for(world) == [leader]
    assert f"The leader {leader} (127.0.0.1) makes the assignment" in said(world)


def test_member_that_did_not_sync_in_time_is_recorded_as_removed() -> None:
    world = World()
    leader, follower = world.joined(
        "A", "B", session_timeout_ms=REBALANCE_MS * 3, rebalance_timeout_ms=SESSION_MS
    )
    world.submit(sync(follower, world.group.generation_id))
    world.pass_ms(SESSION_MS)
    assert f"member {leader} did not sync in time" in texts(world)


def test_expired_session_is_recorded_and_explained() -> None:
    world = World()
    (gone,) = world.stable("A")
    world.pass_ms(SESSION_MS)
    assert f"the session of member {gone} ended" in texts(world)
    assert "session.timeout.ms" in said(world)


def test_session_that_expires_during_a_rebalance_is_recorded() -> None:
    world = World()
    (gone,) = world.stable("A")
    world.submit(join(client_id="B"))
    world.pass_ms(SESSION_MS)
    assert f"the session of member {gone} ended" in texts(world)


def test_leaving_member_is_recorded_with_its_reason() -> None:
    world = World()
    first, _ = world.stable("A", "B")
    world.submit(leave(first))
    assert f"{first} left" in texts(world)


def test_member_that_leaves_during_a_rebalance_is_recorded() -> None:
    world = World()
    first, _ = world.stable("A", "B")
    world.submit(join(client_id="C"))
    assert view(world).state == "PreparingRebalance"
    world.submit(leave(first))
    event = list(world.group.history)[-1]
    assert (event.what, event.text) == (What.MEMBER, f"{first} left")


def test_view_names_the_setting_for_a_consumer_that_did_not_poll() -> None:
    world = World()
    world.stable("A")
    world.submit(join(client_id="B", reason="consumer poll timeout has expired."))
    assert "max.poll.records" in said(world)


@pytest.mark.parametrize("protocols", [CHANGED, RANGE])
def test_fenced_member_is_recorded(protocols: Protocols) -> None:
    """The event is recorded even if the generation continues with the successor."""
    world = World()
    (old,) = world.stable("A", instance="one")
    world.submit(join(instance="one", protocols=protocols))
    assert What.FENCED in kinds(world)
    assert f"member {old}: another one came as one" in texts(world)
    assert "group.instance.id" in said(world)


def test_first_rebalance_reports_that_it_waits_for_more_members() -> None:
    world = World(SETTINGS._replace(initial_rebalance_delay_ms=3_000))
    world.submit(join(client_id="A"))
    world.pass_ms(1_000)
    assert (view(world).is_initial, view(world).due_in_ms) == (True, 2_000)
    assert "group.initial.rebalance.delay.ms" in said(world)


def test_view_counts_clients_that_did_not_return_with_their_member_id() -> None:
    world = World()
    world.stable("A")
    world.submit(join(client_id="B", api_version=9))
    world.submit(join(client_id="C"))
    assert view(world).pending_members == 1
    assert "did not rejoin" in said(world)


def test_view_reports_how_often_a_group_rebalances() -> None:
    world = World()
    (leader,) = world.stable("A")
    for _ in range(3):
        world.pass_ms(1_000)
        world.submit(join(leader, client_id="A", reason="again"))
        world.submit(sync(leader, world.group.generation_id, {leader: b"x"}))
    assert "It started 4 rebalances within 3.0 s; the last: member" in said(world)


def test_rejected_request_leaves_no_event() -> None:
    world = World()
    world.stable("A")
    before = list(world.group.history)
    assert code_of(world.ask(leave("nobody"))) == 0  # the code is the member's
    assert code_of(world.ask(join("nobody"))) != 0
    assert list(world.group.history) == before


def test_history_is_bounded_in_events_and_in_text() -> None:
    history = History()
    assert list(history) == []
    for number in range(EVENTS_MAX + 5):
        history.note(What.MEMBER, f"{number}" + "x" * 10_000, number)
    assert len(history) == EVENTS_MAX
    assert next(iter(history)).time_ms == 5
    assert {len(event.text) for event in history} == {TEXT_LENGTH_MAX}


def test_loaded_group_starts_a_new_history() -> None:
    world = World()
    world.stable("A")
    assert list(world.reload().group.history) == []


def test_empty_group_has_a_view_and_an_unknown_group_has_none() -> None:
    world = World()
    (leader,) = world.stable("A")
    world.submit(leave(leader))
    put(world, range(2))
    assert view(world).state == "Empty"
    assert "It has had no members" in said(world)
    assert [one.partition for one in view(world).offsets] == [0, 1]
    assert view_group(world.state, "none", 0, 0) is None


def test_view_is_bounded_and_marked_if_it_is_not_whole() -> None:
    world = World()
    world.stable("A")
    assert view(world).is_whole
    put(world, range(OFFSETS_MAX + 1))
    assert (len(view(world).offsets), view(world).is_whole) == (OFFSETS_MAX, False)


def test_pages_of_summaries_have_each_group_once_and_are_bounded() -> None:
    world = World()
    for number in range(10):
        world.submit(join(client_id="A", group_id=f"g{number}"))
        put(world, range(5), f"g{number}")
    found, start, pages = [], 0, 0
    while start is not None:
        page = summarize(world.state, start, weight_max=12)
        assert len(page.groups) <= 2
        found += [one.group_id for one in page.groups]
        following = page.next_start
        pages += 1
        if following is None:
            break
        start = following
    assert found == list(world.state.groups)
    assert pages == 5
    (one, *_) = summarize(world.state, 0, weight_max=1).groups
    assert (one.state, one.members_count, len(one.offsets)) == ("CompletingRebalance", 1, 5)
