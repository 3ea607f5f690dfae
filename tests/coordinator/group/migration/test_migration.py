"""A group that changes its kind while it has members: KIP-848, Kafka's ``GroupMetadataManager``."""

from functools import partial
from typing import Any

import pytest

from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX, Budget, Read
from pykafka_core.coordinator.group.consumer.describe import Described, describe_consumer_group
from pykafka_core.coordinator.group.offsets.commit import Commit, commit_offsets
from pykafka_core.coordinator.group.settings import MigrationPolicy
from pykafka_core.protocol.messages import JoinGroupResponse
from tests.coordinator.group.consumer.world import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    Client,
    World,
    offset_of,
    topic_id,
    with_interval,
)
from tests.coordinator.group.migration.clients import (
    CLASSIC_SESSION_MS,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    ClassicClient,
    assignment,
    beat,
    join,
    leave,
    partitions_in,
    stable,
    subscription,
    sync,
)

INCONSISTENT_GROUP_PROTOCOL, UNSUPPORTED_VERSION, GROUP_ID_NOT_FOUND = 23, 35, 69
UNKNOWN_SERVER_ERROR = -1
MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED, STALE_MEMBER_EPOCH = 79, 81, 113
T = topic_id("t")


def settle(*clients: ClassicClient | Client) -> None:
    for _ in range(40):
        news = [one.live() if isinstance(one, ClassicClient) else one.beat() for one in clients]
        if not any(news):
            return
    raise AssertionError("they do not settle")


def numbers_of(client: ClassicClient | Client) -> set[int]:
    if isinstance(client, ClassicClient):
        return set(client.owned.get("t", ()))
    return set(client.owned.get(T, ()))


def classic_group(world: World, count: int = 2, **how: Any) -> list[ClassicClient]:
    """Return the members of a stable classic group."""
    clients = [ClassicClient(world, **how) for _ in range(count)]
    stable(world, *clients)
    assert world.shard.groups[GROUP].state.value == "Stable"
    return clients


def mixed_group(world: World) -> tuple[ClassicClient, Client]:
    [classic] = classic_group(world, 1)
    consumer = Client(world, "new")
    settle(classic, consumer)
    return classic, consumer


def is_classic(world: World) -> bool:
    assert (GROUP in world.shard.groups) != (GROUP in world.shard.consumer_groups)
    return GROUP in world.shard.groups


def with_policy(policy: MigrationPolicy, **settings: Any) -> World:
    consumer = SETTINGS.consumer._replace(migration=policy)
    return World(settings=SETTINGS._replace(consumer=consumer, **settings))


# From classic to consumer.


@pytest.mark.parametrize("is_eager", [False, True])
def test_members_of_both_protocols_share_the_partitions(is_eager: bool) -> None:
    world = World()
    first, second = classic_group(world, is_eager=is_eager)
    assert (numbers_of(first), numbers_of(second)) == ({0, 2, 4}, {1, 3, 5})
    third = Client(world, "new")
    assert not is_classic(world)
    assert third.owned == {}
    settle(first, second, third)
    shares = [numbers_of(one) for one in (first, second, third)]
    assert sorted(len(share) for share in shares) == [2, 2, 2]
    assert set().union(*shares) == set(range(6))
    # The first two members keep a part of their partitions, and get no others.
    assert shares[0] < {0, 2, 4}
    assert shares[1] < {1, 3, 5}


def test_group_epoch_continues_from_the_generation() -> None:
    world = World()
    first, _ = classic_group(world)
    generation = first.generation
    consumer = Client(world, "new")
    assert world.group.epoch == generation + 1
    assert consumer.epoch == generation + 1
    member = world.group.members[first.member_id]
    assert (member.epoch, member.assigned) == (
        generation,
        {T: dict.fromkeys((0, 2, 4), generation)},
    )
    assert beat(world, first.member_id, generation) == REBALANCE_IN_PROGRESS
    assert beat(world, first.member_id, generation + 1) == ILLEGAL_GENERATION


def test_pending_join_of_a_classic_group_fails_with_rebalance_in_progress() -> None:
    world = World()
    first, second = classic_group(world)
    first.ask_to_join()  # The leader's join starts a rebalance, which waits for the second member.
    assert first.waits not in world.responses
    third = Client(world, "new")
    assert isinstance(response := world.responses[first.waits], JoinGroupResponse)
    assert response.error_code == REBALANCE_IN_PROGRESS
    settle(first, second, third)
    assert len(numbers_of(first)) == len(numbers_of(second)) == 2


def test_pending_sync_of_a_classic_group_fails_with_rebalance_in_progress() -> None:
    world = World()
    waiter = join(world)
    response = world.responses[waiter]
    assert isinstance(response, JoinGroupResponse)
    other = join(world)
    again = join(world, response.member_id)
    first, second = world.responses[again], world.responses[other]
    assert isinstance(first, JoinGroupResponse)
    assert isinstance(second, JoinGroupResponse)
    waits = sync(world, second.member_id, second.generation_id)
    assert waits not in world.responses
    Client(world, "new")
    assert world.responses[waits] == REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", MigrationPolicy)
def test_policy_decides_if_a_group_may_be_upgraded(policy: MigrationPolicy) -> None:
    world = with_policy(policy)
    classic_group(world)
    response = world.join("new")
    if policy.allows_upgrade:
        assert response.error_code == 0
    else:
        assert response == GROUP_ID_NOT_FOUND
    assert is_classic(world) != policy.allows_upgrade


@pytest.mark.parametrize(
    ("protocol_type", "metadata", "given"),
    [
        ("connect", subscription("t"), assignment({})),
        ("consumer", b"", assignment({})),
        ("consumer", b"\0", assignment({})),
        ("consumer", b"\xff\xff" + subscription("t")[2:], assignment({})),
        ("consumer", subscription("t")[:-3], assignment({})),
        ("consumer", subscription(*(f"t{n}" for n in range(2_001))), assignment({})),
        ("consumer", subscription("t"), b"\0\1\0\0"),
        ("consumer", subscription("t"), assignment({"t": (0,)}, user_data=b"sticky")),
    ],
)
def test_group_with_unreadable_metadata_stays_classic(
    protocol_type: str, metadata: bytes, given: bytes
) -> None:
    world = World()
    response = world.responses[
        join(world, protocol_type=protocol_type, protocols=(("range", metadata),))
    ]
    assert isinstance(response, JoinGroupResponse)
    sync(world, response.member_id, response.generation_id, {response.member_id: given})
    assert world.join("new") == GROUP_ID_NOT_FOUND
    assert is_classic(world)
    assert beat(world, response.member_id, response.generation_id) == 0


def test_leader_cannot_assign_missing_partitions_or_one_twice() -> None:
    world = World()
    first, second = world.responses[join(world)], None
    assert isinstance(first, JoinGroupResponse)
    waiter = join(world)
    again = world.responses[join(world, first.member_id)]
    second = world.responses[waiter]
    assert isinstance(again, JoinGroupResponse)
    assert isinstance(second, JoinGroupResponse)
    given = assignment({"t": (0, 0, 1, 77, -1), "gone": (0,)})
    ids = first.member_id, second.member_id
    sync(world, ids[0], again.generation_id, dict.fromkeys(ids, given))
    Client(world, "new")
    held = [world.group.members[member_id].assigned for member_id in ids]
    assert [set(has.get(T, ())) for has in held] == [{0, 1}, set()]


def test_newer_subscription_version_is_read_as_the_newest_known_one() -> None:
    world = World()
    metadata = b"\0\x07" + subscription("t", owned={}, version=3)[2:]
    response = world.responses[join(world, protocols=(("range", metadata),))]
    assert isinstance(response, JoinGroupResponse)
    sync(world, response.member_id, response.generation_id, {})
    Client(world, "new")
    assert world.group.members[response.member_id].topic_names == {"t"}


# From consumer to classic.


@pytest.mark.parametrize("how", ["it leaves", "its session ends", "an administrator removes it"])
def test_group_becomes_classic_when_its_last_consumer_member_is_removed(how: str) -> None:
    world = World()
    classic, consumer = mixed_group(world)
    assert len(numbers_of(classic)) == 3
    epoch = world.group.epoch
    if how == "it leaves":
        world.leave("new")
    elif how == "its session ends":
        for _ in range(SESSION_MS // CLASSIC_SESSION_MS + 1):
            classic.live()
            world.pass_ms(CLASSIC_SESSION_MS - 1)
    else:
        assert leave(world, "new") == (0,)
    assert is_classic(world)
    group = world.shard.groups[GROUP]
    assert group.generation_id == epoch
    assert group.state.value == "PreparingRebalance"
    stable(world, classic)
    assert numbers_of(classic) == set(range(6))
    assert group.state.value == "Stable"
    loaded = world.reloaded().groups[GROUP]
    assert list(loaded.members) == [classic.member_id]
    del consumer


@pytest.mark.parametrize("policy", MigrationPolicy)
def test_policy_decides_if_a_group_may_be_downgraded(policy: MigrationPolicy) -> None:
    world = with_policy(policy)
    consumer = Client(world, "new")
    classic = ClassicClient(world)
    settle(classic, consumer)
    world.leave("new")
    assert is_classic(world) == policy.allows_downgrade
    settle(classic)
    assert numbers_of(classic) == set(range(6))


def test_group_too_large_for_a_classic_group_stays() -> None:
    world = with_policy(MigrationPolicy.BIDIRECTIONAL, max_size=1)
    consumer = Client(world, "new")
    classic = [ClassicClient(world), ClassicClient(world)]
    settle(consumer, *classic)
    world.leave("new")
    assert not is_classic(world)
    settle(*classic)
    assert numbers_of(classic[0]) | numbers_of(classic[1]) == set(range(6))


def test_group_that_cannot_be_stored_as_classic_stays() -> None:
    world = World()
    classic, _ = mixed_group(world)
    world.bytes_max = 400
    world.leave("new")
    assert not is_classic(world)
    world.bytes_max = 100_000
    settle(classic)
    assert numbers_of(classic) == set(range(6))


def test_group_stays_a_consumer_group_when_its_last_classic_member_leaves() -> None:
    world = World()
    classic, consumer = mixed_group(world)
    assert leave(world, classic.member_id) == (0,)
    settle(consumer)
    assert not is_classic(world)
    assert numbers_of(consumer) == set(range(6))


def test_empty_consumer_group_becomes_classic() -> None:
    world = World()
    world.join("new")
    world.leave("new")
    classic = ClassicClient(world)
    stable(world, classic)
    assert is_classic(world)
    assert numbers_of(classic) == set(range(6))


# Classic members of a consumer group.


def test_dynamic_member_gets_its_id_first() -> None:
    world = World()
    consumer = Client(world, "new")
    required = world.responses[join(world, api_version=9)]
    assert isinstance(required, JoinGroupResponse)
    assert required.error_code == MEMBER_ID_REQUIRED
    assert list(world.group.members) == ["new"]
    response = world.responses[join(world, required.member_id, api_version=9)]
    assert isinstance(response, JoinGroupResponse)
    assert (response.member_id, response.leader, response.members) == (required.member_id, "", [])
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert response.generation_id == world.group.epoch
    settle(consumer)
    assert beat(world, response.member_id, response.generation_id) == REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"protocol_type": "connect"}, INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("other", subscription("t")),)}, INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("range", b"\0"),)}, UNKNOWN_SERVER_ERROR),
    ],
)
def test_incompatible_classic_member_cannot_join(changes: dict[str, Any], code: int) -> None:
    world = World()
    mixed_group(world)
    assert world.responses[join(world, **changes)] == code


def test_full_group_rejects_new_members() -> None:
    world = World(settings=SETTINGS._replace(consumer=SETTINGS.consumer._replace(max_size=1)))
    Client(world, "new")
    assert world.responses[join(world)] == GROUP_MAX_SIZE_REACHED


def test_full_group_accepts_the_classic_successor_of_a_static_member() -> None:
    world = World(settings=SETTINGS._replace(consumer=SETTINGS.consumer._replace(max_size=1)))
    Client(world, "new", instance_id="i")
    response = world.responses[join(world, instance="i")]
    assert isinstance(response, JoinGroupResponse)
    assert response.error_code == 0


def test_sync_returns_the_assignment_of_the_member() -> None:
    world = World()
    classic, _ = mixed_group(world)
    own = classic.member_id, classic.generation
    response = world.responses[sync(world, *own, protocol=("consumer", "range"))]
    assert getattr(response, "protocol_type", None) == "consumer"
    assert getattr(response, "protocol_name", None) == "range"
    assert partitions_in(getattr(response, "assignment", b"")) == classic.owned
    for protocol in (("connect", "range"), ("consumer", "sticky")):
        refused = world.responses[sync(world, *own, protocol=protocol)]
        assert refused == INCONSISTENT_GROUP_PROTOCOL
    assert world.responses[sync(world, own[0], own[1] - 1)] == ILLEGAL_GENERATION
    assert world.responses[sync(world, "new", world.group.epoch)] == UNKNOWN_MEMBER_ID
    assert world.responses[sync(world, "nobody", 1)] == UNKNOWN_MEMBER_ID


def test_consumer_protocol_member_cannot_send_classic_heartbeats() -> None:
    world = World()
    mixed_group(world)
    assert beat(world, "new", world.group.epoch) == UNKNOWN_MEMBER_ID
    assert beat(world, "nobody", world.group.epoch) == UNKNOWN_MEMBER_ID


def test_sync_in_an_older_epoch_fails_with_rebalance_in_progress() -> None:
    world = World()
    classic, _ = mixed_group(world)
    world.join("third")
    own = classic.member_id, classic.generation
    assert world.responses[sync(world, *own)] == REBALANCE_IN_PROGRESS


def test_a_classic_member_does_not_rejoin_within_the_assignment_interval() -> None:
    world = with_interval(1_000)
    classic, _ = mixed_group(world)
    world.join("third")
    own = classic.member_id, classic.generation
    assert beat(world, *own) == 0
    assert getattr(world.responses[sync(world, *own)], "error_code", None) == 0
    world.pass_ms(1_000)
    assert beat(world, *own) == REBALANCE_IN_PROGRESS
    assert world.responses[sync(world, *own)] == REBALANCE_IN_PROGRESS
    joined = world.responses[join(world, classic.member_id)]
    assert getattr(joined, "generation_id", None) == world.group.epoch
    assert world.group.assignment_epoch == world.group.epoch


@pytest.mark.parametrize("what", ["join", "sync", "beat"])
def test_classic_member_that_does_not_join_sync_or_heartbeat_is_removed(what: str) -> None:
    world = World()
    classic, consumer = mixed_group(world)
    world.join("third")
    if what == "sync":
        assert isinstance(world.responses[join(world, classic.member_id)], JoinGroupResponse)
    generation = world.group.members[classic.member_id].epoch
    passed_ms, step_ms = 0, CLASSIC_SESSION_MS - 1
    while classic.member_id in world.group.members:
        assert passed_ms <= REBALANCE_MS, "it is never removed"
        if what != "beat":
            beat(world, classic.member_id, generation)
        consumer.beat()
        world.beat("third", world.group.members["third"].epoch)
        world.pass_ms(step_ms)
        passed_ms += step_ms
    limit_ms = CLASSIC_SESSION_MS if what == "beat" else REBALANCE_MS
    assert limit_ms - step_ms <= passed_ms <= limit_ms + step_ms


def test_loaded_classic_member_keeps_its_session_timeout() -> None:
    world = World()
    classic, _ = mixed_group(world)
    world.shard = world.reloaded()
    turn = world._turn()
    world.shard.loaded(turn)
    world._take(turn)
    world.pass_ms(CLASSIC_SESSION_MS)
    assert list(world.group.members) == ["new"]
    del classic


def test_commits_of_a_classic_member_need_its_generation() -> None:
    world = World()
    classic, consumer = mixed_group(world)

    def commit(member_id: str, generation: int, api_version: int | None) -> object:
        number = min(next(iter(world.group.members[member_id].assigned.values())))
        named = Commit(GROUP, member_id, None, generation, [offset_of("t", number)], api_version)
        return world.ask(partial(commit_offsets, named))

    for version in (2, 8, 10, None):
        assert commit(classic.member_id, classic.generation, version) is None
        for another in (classic.generation + 1, 0):
            assert commit(classic.member_id, another, version) == ILLEGAL_GENERATION
    assert commit("new", consumer.epoch, 8) == UNSUPPORTED_VERSION
    assert commit("new", consumer.epoch - 1, 9) == STALE_MEMBER_EPOCH


def test_description_shows_the_protocol_of_each_member() -> None:
    world = World()
    classic, _ = mixed_group(world)
    read = world.ask(partial(describe_consumer_group, GROUP, Budget(UNRESERVED_BYTES_MAX)))
    assert isinstance(read, Read)
    described = read.value
    assert isinstance(described, Described)
    kinds = {one.member.member_id: one.member.classic is not None for one in described.members}
    assert kinds == {classic.member_id: True, "new": False}


# Static members that change their protocol.


def test_static_member_returns_with_the_consumer_protocol() -> None:
    world = World()
    [old] = classic_group(world, 1, instance="i")
    new = Client(world, "new", instance_id="i")
    assert list(world.group.members) == ["new"]
    assert new.epoch == old.generation
    settle(new)
    assert numbers_of(new) == set(range(6))
    assert beat(world, old.member_id, old.generation) == UNKNOWN_MEMBER_ID


def test_static_member_returns_with_the_classic_protocol() -> None:
    world = World()
    old = Client(world, "old", instance_id="i")
    new = ClassicClient(world, instance="i")
    assert is_classic(world)
    assert world.shard.groups[GROUP].state.value == "Stable"
    stable(world, new)
    assert list(world.shard.groups[GROUP].members) == [new.member_id]
    assert (new.generation, numbers_of(new)) == (old.epoch, set(range(6)))
    assert world.beat("old", old.epoch) == GROUP_ID_NOT_FOUND


def test_static_classic_member_returns_to_a_consumer_group() -> None:
    world = World()
    consumer = Client(world, "new")
    old = ClassicClient(world, instance="i")
    settle(old, consumer)
    again = ClassicClient(world, instance="i")
    settle(again, consumer)
    assert set(world.group.members) == {"new", again.member_id}
    assert numbers_of(again) == numbers_of(old)
    assert world.responses[join(world, old.member_id, "i")] == 82  # FENCED_INSTANCE_ID
