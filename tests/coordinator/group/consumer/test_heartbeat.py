"""The responses to heartbeats: epochs, partitions, and errors."""

from functools import partial
from typing import Any

import pytest

from pykafka_core.coordinator.group.consumer.assignment.epochs import EPOCH_MAX
from pykafka_core.coordinator.group.consumer.member import ConsumerGroupState
from pykafka_core.coordinator.group.consumer.records import epoch_record
from pykafka_core.coordinator.group.consumer.timers.due import RETRY_MS
from pykafka_core.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    UnknownMemberIdError,
    UnknownServerError,
    UnreleasedInstanceIdError,
)
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    decode_record_key,
    decode_record_value,
)
from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tests.coordinator.group.consumer.world import (
    BYTES_MAX,
    FIRST,
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    Client,
    World,
    assigned,
    settle,
    topic_id,
    with_interval,
)

T = topic_id("t")


def test_first_member_gets_every_partition_in_the_first_epoch() -> None:
    response = World().join("a")
    assert (response.member_id, response.member_epoch) == ("a", FIRST)
    assert response.heartbeat_interval_ms == INTERVAL_MS
    assert assigned(response) == {T: frozenset(range(6))}


def test_member_without_an_id_gets_one() -> None:
    assert World().join("").member_id == "uuid1"


def test_assignment_is_sent_once_and_again_after_a_full_heartbeat() -> None:
    world = World()
    world.join("a")
    owned = {T: frozenset(range(6))}
    assert world.beat("a", FIRST, owned=owned).assignment is None
    assert world.beat("a", FIRST).assignment is None
    full = world.beat(
        "a", FIRST, owned=owned, rebalance_timeout_ms=REBALANCE_MS, topic_names=frozenset("t")
    )
    assert assigned(full) == owned


def test_partitions_are_revoked_before_another_member_gets_them() -> None:
    world = World()
    a = Client(world, "a")
    b = Client(world, "b")
    assert b.owned == {}
    assert (a.epoch, b.epoch) == (FIRST, FIRST + 1)
    # The response has the partitions that it keeps, in its old epoch; it still holds the others.
    told = world.beat("a", FIRST, owned=a.owned)
    assert told.member_epoch == FIRST
    kept = assigned(told)
    assert len(kept[T]) == 3
    assert not b.beat()
    # It confirms that it has revoked them.
    response = world.beat("a", FIRST, owned=kept)
    assert response.member_epoch == FIRST + 1
    assert b.beat()
    assert b.owned == {T: frozenset(range(6)) - kept[T]}
    assert world.group.state.value == "Stable"


def test_member_that_must_revoke_more_keeps_its_epoch() -> None:
    world = World()
    world.join("a")
    world.join("b")
    first = world.beat("a", FIRST, owned={T: frozenset(range(6))})
    world.join("c")
    second = world.beat("a", FIRST, owned=assigned(first))
    assert len(assigned(second)[T]) < len(assigned(first)[T])
    assert second.member_epoch == FIRST
    assert world.beat("a", FIRST, owned=assigned(second)).member_epoch == world.group.epoch


def test_states_of_a_group_have_the_names_of_kafka() -> None:
    world, states = World(), []
    for step in (
        partial(world.join, "a"),
        partial(world.join, "b"),
        partial(world.leave, "b"),
        partial(world.leave, "a"),
    ):
        step()
        states.append(world.group.state.value)
    assert states == ["Stable", "Reconciling", "Assigning", "Empty"]


def test_heartbeat_after_a_lost_response_gets_the_new_epoch() -> None:
    world = World()
    world.join("a")
    world.join("b")
    three = assigned(world.beat("a", FIRST, owned={T: frozenset(range(6))}))
    world.beat("a", FIRST, owned=three)
    # The response was lost: the member sends the previous epoch, and owns assigned partitions only.
    assert world.beat("a", FIRST, owned=three).member_epoch == FIRST + 1


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [(FIRST + 2, {}), (FIRST + 1, {}), (FIRST - 1, {}), (0x7FFFFFFF, None)],
)
def test_a_member_of_another_epoch_is_fenced(epoch: int, owned: Any) -> None:
    world = World()
    world.join("a")
    assert world.beat("a", epoch, owned=owned) == FencedMemberEpochError.code


def test_previous_epoch_is_fenced_with_partitions_that_are_not_assigned() -> None:
    world = World()
    world.join("a")
    world.join("b")
    everything = {T: frozenset(range(6))}
    three = assigned(world.beat("a", FIRST, owned=everything))
    assert world.beat("a", FIRST, owned=three).member_epoch == FIRST + 1
    assert world.beat("a", FIRST, owned=everything) == FencedMemberEpochError.code
    assert world.beat("a", FIRST, owned=None) == FencedMemberEpochError.code


def test_fenced_member_rejoins_and_keeps_its_partitions() -> None:
    world = World()
    world.join("a")
    assert world.beat("a", 7) == FencedMemberEpochError.code
    again = world.join("a")
    assert again.member_epoch == FIRST
    assert assigned(again) == {T: frozenset(range(6))}


def test_a_heartbeat_needs_a_group_and_a_member() -> None:
    world = World()
    assert world.beat("a", FIRST) == GroupIdNotFoundError.code
    assert world.leave("a") == GroupIdNotFoundError.code
    world.join("a")
    assert world.beat("b", FIRST) == UnknownMemberIdError.code
    assert world.leave("b") == UnknownMemberIdError.code


def test_full_group_rejects_new_members() -> None:
    world = World(settings=SETTINGS._replace(consumer=SETTINGS.consumer._replace(max_size=2)))
    world.join("a")
    world.join("b")
    assert world.join("c") == GroupMaxSizeReachedError.code
    assert world.join("a").error_code == 0
    world.leave("b")
    assert world.join("c").error_code == 0


def test_leaving_member_releases_its_partitions() -> None:
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    settle([a, b])
    response = world.leave("b")
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    assert (response.member_id, response.member_epoch) == ("b", -1)
    settle([a])
    assert a.owned == {T: frozenset(range(6))}
    assert a.epoch == FIRST + 2


def test_changed_subscription_starts_a_new_epoch() -> None:
    world = World({"t": 2, "u": 2})
    a = Client(world, "a", "t")
    a.beat(topic_names=frozenset(("u",)))
    settle([a])
    assert a.owned == {topic_id("u"): frozenset((0, 1))}
    assert a.epoch == FIRST + 1


@pytest.mark.parametrize(
    "said", [{"rack_id": "r"}, {"client_id": "other"}, {"server_assignor": "uniform"}]
)
def test_changes_outside_the_subscription_start_no_epoch(said: dict[str, str]) -> None:
    world = World()
    a = Client(world, "a")
    stored = len(world.records)
    assert not a.beat(**said)
    assert len(world.records) == stored + 1


def test_assignor_that_becomes_the_most_preferred_starts_a_new_epoch() -> None:
    """KAFKA-20434, in 4.4: before that, the group kept the assignment of the previous assignor."""
    world = World({"t": 2, "u": 2})
    clients = [Client(world, name, "t", "u", server_assignor="uniform") for name in "abc"]
    settle(clients)
    epoch = world.group.epoch
    clients[0].beat(server_assignor="range")
    assert world.group.epoch == epoch
    clients[1].beat(server_assignor="range")
    assert world.group.epoch == epoch + 1
    settle(clients)
    # Each topic is divided into ranges: the first two members have partitions 0 and 1 of both.
    assert [sum(map(len, client.owned.values())) for client in clients] == [2, 2, 0]


def test_unchanged_heartbeat_stores_nothing() -> None:
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    settle([a, b])
    stored = len(world.records)
    assert not a.beat()
    assert len(world.records) == stored


def test_new_and_deleted_topics_change_the_assignment() -> None:
    world = World({"t": 2})
    a = Client(world, "a", "t", "later")
    world.topics.set("t", 4)
    settle([a])
    assert a.owned == {T: frozenset(range(4))}
    world.topics.set("later", 1)
    settle([a])
    assert a.owned == {T: frozenset(range(4)), topic_id("later"): frozenset((0,))}
    world.topics.set("t", 0)
    settle([a])
    assert a.owned == {topic_id("later"): frozenset((0,))}
    assert a.epoch == FIRST + 3


def test_other_topics_start_no_epoch() -> None:
    world = World()
    a = Client(world, "a")
    world.topics.set("other", 3)
    assert not a.beat()


def test_member_without_topics_gets_only_an_epoch() -> None:
    response = World({}).join("a")
    assert response.member_epoch == FIRST
    assert assigned(response) == {}


def test_most_preferred_assignor_is_used() -> None:
    world = World({"t": 2, "u": 2})
    names = ("t", "u")
    a = Client(world, "a", *names, server_assignor="range")
    b = Client(world, "b", *names, server_assignor="range")
    c = Client(world, "c", *names, server_assignor="uniform")
    settle([a, b, c])
    # Each topic is divided into ranges: the first two members have partitions 0 and 1 of both.
    assert a.owned == {topic_id("t"): frozenset((0,)), topic_id("u"): frozenset((0,))}
    assert c.owned == {}
    world.leave("a")
    world.leave("b")
    settle([c])
    assert sum(map(len, c.owned.values())) == 4


# Sessions and rebalance timeouts.


def test_silent_member_is_removed_when_its_session_expires() -> None:
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    settle([a, b])
    world.pass_ms(SESSION_MS - 1)
    assert not a.beat()
    world.pass_ms(1)
    assert set(world.group.members) == {"a"}
    settle([a])
    assert a.owned == {T: frozenset(range(6))}


def test_member_that_does_not_revoke_is_removed_after_the_rebalance_timeout() -> None:
    world = World()
    a = Client(world, "a", rebalance_timeout_ms=30_000)
    b = Client(world, "b")
    everything = {T: frozenset(range(6))}
    world.beat("a", FIRST, owned=everything)
    world.pass_ms(29_999)
    world.beat("a", FIRST, owned=everything)
    b.beat()
    world.pass_ms(1)
    assert world.beat("a", FIRST, owned=everything) == UnknownMemberIdError.code
    settle([b])
    assert b.owned == everything
    assert a.epoch == FIRST


def test_member_that_revoked_its_partitions_is_not_removed() -> None:
    world = World()
    a = Client(world, "a", rebalance_timeout_ms=30_000)
    b = Client(world, "b")
    settle([a, b])
    world.pass_ms(29_999)
    a.beat()
    b.beat()
    world.pass_ms(2_000)
    assert set(world.group.members) == {"a", "b"}


@pytest.mark.parametrize("due_ms", [SESSION_MS, 30_000])
def test_removal_whose_records_do_not_fit_is_retried(due_ms: int) -> None:
    world = World()
    everything = {T: frozenset(range(6))}
    Client(world, "a", rebalance_timeout_ms=due_ms)
    Client(world, "b")
    world.beat("a", FIRST, owned=everything)
    world.bytes_max = 10
    world.pass_ms(due_ms)
    assert "a" in world.group.members
    world.bytes_max = BYTES_MAX
    world.pass_ms(RETRY_MS)
    assert "a" not in world.group.members


def test_sessions_of_loaded_members_restart() -> None:
    world = World()
    world.join("a")
    world.shard = world.reloaded()
    turn = world._turn()
    world.shard.loaded(turn)
    world.pass_ms(SESSION_MS - 1)
    assert set(world.group.members) == {"a"}
    world.pass_ms(1)
    assert world.group.members == {}


# Static members.


def test_returning_static_member_gets_its_partitions_at_once() -> None:
    world = World()
    a, b = Client(world, "a", instance_id="i"), Client(world, "b")
    settle([a, b])
    away = world.leave("a", -2, "i")
    assert (away.member_id, away.member_epoch) == ("a", -2)
    assert not b.beat()
    back = world.join("a2", instance_id="i")
    assert back.member_epoch == a.epoch
    assert assigned(back) == a.owned
    assert set(world.group.members) == {"a2", "b"}
    assert not b.beat()


def test_static_member_that_does_not_return_is_removed() -> None:
    world = World()
    Client(world, "a", instance_id="i")
    world.leave("a", -2, "i")
    world.pass_ms(SESSION_MS)
    assert world.group.members == {}
    assert world.join("a2", instance_id="i").error_code == 0


@pytest.mark.parametrize("is_loaded", [False, True])
def test_absent_static_member_has_revoked_its_partitions(is_loaded: bool) -> None:
    world = World()
    Client(world, "a", instance_id="i", rebalance_timeout_ms=1_000)
    Client(world, "b")
    world.beat("a", FIRST, owned={T: frozenset(range(6))}, instance_id="i")
    world.leave("a", -2, "i")
    if is_loaded:
        world.shard = world.reloaded()
        world.shard.loaded(world._turn())
    world.pass_ms(SESSION_MS - 1)
    assert set(world.group.members) == {"a", "b"}
    assert world.join("a2", instance_id="i").member_epoch == world.group.epoch


def test_instance_id_belongs_to_one_member() -> None:
    world = World()
    world.join("a", instance_id="i")
    assert world.join("b", instance_id="i") == UnreleasedInstanceIdError.code
    assert world.beat("b", FIRST, instance_id="i") == FencedInstanceIdError.code
    assert world.leave("b", -1, "i") == FencedInstanceIdError.code
    assert world.beat("a", FIRST, instance_id="other") == UnknownMemberIdError.code
    assert world.leave("a", -1, "i").member_epoch == -1


def test_a_static_member_returns_to_a_full_group() -> None:
    """KAFKA-20601, in 4.4: it replaces a member, so the group does not grow."""
    world = World(settings=SETTINGS._replace(consumer=SETTINGS.consumer._replace(max_size=1)))
    world.join("a", instance_id="i")
    assert world.join("b", instance_id="i") == UnreleasedInstanceIdError.code
    assert world.join("b", instance_id="other") == GroupMaxSizeReachedError.code
    world.leave("a", -2, "i")
    assert world.join("b", instance_id="i").error_code == 0
    assert set(world.group.members) == {"b"}


def test_replaced_static_member_is_fenced() -> None:
    world = World()
    world.join("a", instance_id="i")
    world.leave("a", -2, "i")
    world.join("b", instance_id="i")
    assert world.beat("a", FIRST, instance_id="i") == FencedInstanceIdError.code
    world.pass_ms(SESSION_MS - 1)
    world.beat("b", FIRST, instance_id="i")
    world.pass_ms(SESSION_MS - 1)
    assert set(world.group.members) == {"b"}


# Records.


def test_records_that_do_not_fit_change_nothing() -> None:
    world = World(bytes_max=60)
    assert world.join("a") == UnknownServerError.code
    assert world.records == []
    assert world.shard.consumer_groups == {}


def in_the_last_epoch() -> World:
    """Return two members with their partitions, in the last epoch that a record can contain."""
    world = World()
    clients = [Client(world, name) for name in "ab"]
    settle(clients)
    key, value = epoch_record(GROUP, EPOCH_MAX, world.group.metadata_hash)
    world.shard.replay(-1, key, value)
    world.records.append((key, value))
    settle(clients)
    assert [client.epoch for client in clients] == [EPOCH_MAX, EPOCH_MAX]
    return world


def test_request_that_needs_an_epoch_above_the_maximum_fails() -> None:
    world = in_the_last_epoch()
    assert world.join("c") == UnknownServerError.code
    assert world.beat("a", EPOCH_MAX, topic_names=frozenset("u")) == UnknownServerError.code
    world.topics.set("t", 7)
    assert world.beat("a", EPOCH_MAX) == UnknownServerError.code


def test_members_can_be_removed_in_the_last_epoch() -> None:
    world = in_the_last_epoch()
    assert world.leave("a").member_epoch == -1
    world.pass_ms(SESSION_MS)
    assert not world.group.has_members
    assert world.group.epoch == EPOCH_MAX


def test_tombstones_are_in_the_order_of_kafka() -> None:
    """They are followed by the epochs of the group and of its target: an empty group needs no
    assignment (KAFKA-20442).
    """
    world = World()
    world.join("a")
    before = len(world.records)
    world.leave("a")
    kinds = [int.from_bytes(key[:2], "big") for key, _ in world.records[before:]]
    assert kinds == [8, 7, 5, 3, 6]
    is_tombstone = [value is None for _, value in world.records[before:]]
    assert is_tombstone == [True, True, True, False, False]


def test_assignment_record_contains_its_time() -> None:
    """KIP-1263: Kafka's interval starts at this time; an empty group has 0, so there is no wait."""
    world = World()
    world.join("a")
    joined_ms = world.now_ms
    world.pass_ms(5)
    world.leave("a")
    stored = [(decode_record_key(GROUP_KEYS, key), value) for key, value in world.records]
    times: list[Any] = [
        decode_record_value("ConsumerGroupTargetAssignmentMetadataValue", value)
        for key, value in stored
        if isinstance(key, ConsumerGroupTargetAssignmentMetadataKey) and value is not None
    ]
    assert [(one.assignment_epoch, one.assignment_timestamp) for one in times] == [
        (FIRST, joined_ms),
        (FIRST + 1, 0),
    ]


def test_group_is_reassigned_after_the_assignment_interval() -> None:
    """KIP-1263: until then a member that joins has no partitions, in the epoch of the last
    assignment.
    """
    world = with_interval(1_000)
    world.join("a")
    waiting = world.join("b")
    assert (waiting.member_epoch, waiting.assignment.topic_partitions) == (FIRST, [])
    assert (world.group.epoch, world.group.assignment_epoch) == (FIRST + 1, FIRST)
    assert world.group.state is ConsumerGroupState.ASSIGNING
    world.pass_ms(999)
    assert world.beat("a", FIRST, owned={}).member_epoch == FIRST
    world.pass_ms(1)
    world.beat("b", FIRST, owned={})
    assert world.group.assignment_epoch == FIRST + 1
    assert set(world.group.targets) == {"a", "b"}


def test_interval_of_0_and_a_clock_that_moves_back_delay_no_assignment() -> None:
    for interval_ms in (0, 1_000):
        world = with_interval(interval_ms)
        world.join("a")
        world.now_ms -= 1
        world.join("b")
        assert world.group.assignment_epoch == FIRST + 1


def test_a_group_that_was_empty_is_assigned_at_once() -> None:
    world = with_interval(1_000)
    world.join("a")
    world.leave("a")
    assert world.join("b").assignment.topic_partitions


def test_replaying_records_twice_changes_nothing() -> None:
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    settle([a, b])
    world.leave("b")
    world.records += world.records
    world.join("c")
    assert set(world.reloaded().consumer_groups[GROUP].members) == {"a", "c"}
