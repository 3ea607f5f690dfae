"""The view of a consumer group for monitoring and `groups why`."""

from functools import partial

from pykafka_core.coordinator.group.classic.leave import leave_group
from pykafka_core.coordinator.group.consumer.group import REFRESH_INTERVAL_MS
from pykafka_core.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from pykafka_core.coordinator.group.explain import explain, view_group
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.summary import summarize
from pykafka_core.coordinator.shard import BatchFullError
from pykafka_core.protocol.messages import LeaveGroupRequest
from tests.coordinator.group.consumer.world import FIRST, GROUP, MS, SESSION_MS, World

LEAVING = LeaveGroupRequest.MemberIdentity


def explained(world: World) -> list[str]:
    view = view_group(world.shard, GROUP, world.now_ms * MS, world.now_ms)
    assert view is not None
    return explain(view)


def test_member_that_must_revoke_partitions_is_named() -> None:
    world = World()
    epoch = world.join("slow").member_epoch
    assert explained(world) == [f"It has been stable, generation {FIRST}, 1 member."]
    world.join("new")
    world.beat("slow", epoch)
    assert explained(world) == [
        f"Members of epoch {FIRST + 1} exchange partitions. Members that must revoke some: slow (127.0.0.1)."
    ]


def test_group_that_all_members_left_is_empty() -> None:
    world = World()
    world.join("only")
    world.leave("only")
    assert explained(world) == ["It has had no members: no consumer reads for this group."]


def test_summaries_include_consumer_groups() -> None:
    world = World()
    world.join("a")
    (group,) = summarize(world.shard, 0, 100).groups
    assert (group.group_id, group.state, group.members_count) == (GROUP, "Stable", 1)
    assert summarize(world.shard, 1, 100).groups == []


def history(world: World) -> list[tuple[What, str]]:
    view = view_group(world.shard, GROUP, world.now_ms * MS, world.now_ms)
    assert view is not None
    return [(one.what, one.text) for one in view.history]


def test_view_of_a_stable_group_names_missing_topics() -> None:
    """Its members wait for records that no producer can write, although the group is stable."""
    world = World()
    world.join("a", "t", "ordres", topic_regex="pay.*")
    expected = (
        "Its members subscribe to topics that do not exist, and read nothing there: "
        "topic ordres, a topic that matches pay.*."
    )
    assert expected in explained(world)
    world.topics.set("ordres", 1)
    world.topics.set("payments", 1)
    world.pass_ms(REFRESH_INTERVAL_MS)
    world.beat("a", FIRST)
    assert expected not in explained(world)
    assert "topics that do not exist" not in " ".join(explained(world))


def test_joins_and_new_topics_are_recorded_with_the_epochs_they_started() -> None:
    world = World()
    epoch = world.join("a").member_epoch
    world.topics.set("t", 7)
    world.beat("a", epoch)
    world.join("a", "u")
    assert history(world) == [
        (What.REBALANCE, "member a joined"),
        (What.GENERATION, f"epoch {FIRST} began with 1 member"),
        (What.ASSIGNED, f"all members have their partitions of epoch {FIRST}"),
        (What.REBALANCE, "the topics that its members subscribe to changed"),
        (What.GENERATION, f"epoch {FIRST + 1} began with 1 member"),
        (What.ASSIGNED, f"all members have their partitions of epoch {FIRST + 1}"),
        (What.REBALANCE, "member a changed its subscription"),
        (What.GENERATION, f"epoch {FIRST + 2} began with 1 member"),
        (What.ASSIGNED, f"all members have their partitions of epoch {FIRST + 2}"),
    ]


def test_unchanged_heartbeat_leaves_no_event() -> None:
    world = World()
    epoch = world.join("a").member_epoch
    before = history(world)
    world.beat("a", epoch)
    assert history(world) == before


def test_removed_members_are_recorded_with_the_reason() -> None:
    world = World()
    for member_id in ("a", "b", "c"):
        world.join(member_id)
    world.leave("a")
    world.ask(partial(leave_group, GROUP, [LEAVING(member_id="b", reason="replaced")]))
    world.pass_ms(SESSION_MS)
    causes = [text for what, text in history(world) if what is What.REBALANCE]
    assert causes[3:] == ["member a left", "b left: replaced", "the session of member c ended"]
    assert any("session ended without a LeaveGroup" in sentence for sentence in explained(world))


def test_member_that_keeps_partitions_too_long_is_recorded_as_removed() -> None:
    world = World()
    epoch = world.join("slow", rebalance_timeout_ms=1_000).member_epoch
    world.join("new")
    world.beat("slow", epoch)
    world.pass_ms(1_000)
    text = "member slow did not revoke its partitions in time"
    assert (What.REMOVED, text) in history(world)
    assert any("too slow" in sentence for sentence in explained(world))


def test_departure_return_and_fencing_of_static_members_are_recorded() -> None:
    world = World()
    epoch = world.join("first", instance_id="i").member_epoch
    world.join("second", instance_id="i")
    assert (What.FENCED, "member second: another one has the instance id i") in history(world)
    assert any("Members were fenced" in sentence for sentence in explained(world))
    world.leave("first", LEAVE_STATIC_EPOCH, "i")
    world.join("second", instance_id="i")
    texts = [text for _, text in history(world)]
    assert "static member i left temporarily" in texts
    assert "static member i rejoined as second" in texts
    assert epoch == world.group.epoch


def test_rejected_change_is_not_recorded() -> None:
    world = World(bytes_max=1)
    assert world.join("a") == BatchFullError.code
    assert view_group(world.shard, GROUP, 0, 0) is None
