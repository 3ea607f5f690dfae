"""Commits of offsets in a consumer group: which members may commit, in which epoch."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from pykafka_core.coordinator.group.consumer.records import VALUE_VERSION
from pykafka_core.coordinator.group.offsets.commit import Commit, commit_offsets
from pykafka_core.coordinator.group.offsets.transaction import (
    TransactionalCommit,
    begin_commit,
    commit_in_transaction,
)
from pykafka_core.coordinator.group.offsets.transactions import Guard
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.errors import (
    NONE,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    decode_record_key,
    decode_record_value,
    encode_record_value,
)
from tests.coordinator.group.consumer.world import (
    FIRST,
    GROUP,
    Client,
    World,
    assigned,
    offset_of,
    settle,
    topic_id,
)

Who = tuple[str, str | None, int]
NOBODY = ("", None, -1)
MEMBER = ("a", None, FIRST)
OLD, NEW = ("a", None, FIRST - 1), ("a", None, FIRST + 1)
STRANGER = ("b", None, FIRST)


def commit_of(who: Who, api_version: int | None, partitions: Iterable[int]) -> Commit:
    member_id, instance_id, epoch = who
    offsets = [offset_of("t", number) for number in partitions]
    return Commit(GROUP, member_id, instance_id, epoch, offsets, api_version)


def committed(
    world: World, who: Who, api_version: int = 9, partitions: Iterable[int] = (0,)
) -> object:
    commit = commit_of(who, api_version, partitions)
    response = world.ask(partial(commit_offsets, commit))
    return NONE if response is None else response


def committed_in_transaction(world: World, who: Who, partitions: Iterable[int] = (0,)) -> object:
    asked = TransactionalCommit(commit_of(who, None, partitions), 7, 3)
    response = world.ask(partial(begin_commit, asked))
    if isinstance(response, Guard):
        response = world.ask(partial(commit_in_transaction, asked, response))
    return NONE if response is None else response


@pytest.mark.parametrize(
    ("who", "code", "transactional_code"),
    [
        (MEMBER, NONE, NONE),
        (NOBODY, UnknownMemberIdError.code, NONE),
        (("", "i", -1), UnknownMemberIdError.code, UnknownMemberIdError.code),
        (("", None, FIRST), UnknownMemberIdError.code, UnknownMemberIdError.code),
        (STRANGER, UnknownMemberIdError.code, UnknownMemberIdError.code),
        (OLD, StaleMemberEpochError.code, StaleMemberEpochError.code),
        (NEW, StaleMemberEpochError.code, StaleMemberEpochError.code),
        (("a", None, -1), StaleMemberEpochError.code, StaleMemberEpochError.code),
    ],
)
def test_commit_to_a_group_with_members_is_checked(
    who: Who, code: int, transactional_code: int
) -> None:
    world = World()
    world.join("a")
    assert committed(world, who) == code
    assert committed_in_transaction(world, who) == transactional_code


def test_version_without_member_epochs_commits_only_to_groups_without_members() -> None:
    world = World()
    world.join("a")
    assert committed(world, MEMBER, api_version=8) == UnsupportedVersionError.code
    world.leave("a")
    assert committed(world, NOBODY, api_version=8) == NONE


# Partitions are stored with the epochs in which members got them (KIP-1251).


T = topic_id("t")


def shared() -> tuple[World, list[int], list[int]]:
    """Return two members in the second epoch, the partitions that a kept from the first epoch, and
    those of b.
    """
    world = World()
    clients = [Client(world, "a"), Client(world, "b")]
    settle(clients)
    kept, moved = (sorted(client.owned[T]) for client in clients)
    return world, kept, moved


@pytest.mark.parametrize("is_loaded", [False, True])
def test_older_epoch_can_commit_partitions_that_were_assigned_in_it(is_loaded: bool) -> None:
    world, kept, moved = shared()
    if is_loaded:
        world.shard = world.reloaded()
    late, stale = ("a", None, FIRST), StaleMemberEpochError.code
    for commit in (partial(committed, world), partial(committed_in_transaction, world)):
        assert commit(late, partitions=kept) == NONE
        # All offsets or none: another member now has the second partition.
        assert commit(late, partitions=[kept[0], moved[0]]) == stale
        assert commit(late, partitions=moved) == stale
        # These partitions were not assigned to the member in that epoch.
        assert commit(("b", None, FIRST), partitions=moved) == stale
        assert commit(("a", None, FIRST - 1), partitions=kept) == stale
        assert commit(("a", None, FIRST + 2), partitions=kept) == stale


def test_member_can_commit_partitions_that_it_is_revoking() -> None:
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    told = world.beat("a", a.epoch, owned=a.owned)
    given_up = a.owned[T] - assigned(told)[T]
    assert committed(world, ("a", None, FIRST), partitions=given_up) == NONE
    a.take(told)
    settle([a, b])
    assert committed(world, ("a", None, FIRST), partitions=given_up) == StaleMemberEpochError.code


def test_static_member_can_commit_in_any_epoch_after_its_return() -> None:
    world = World()
    Client(world, "a", instance_id="i")
    world.leave("a", -2, "i")
    world.join("b", instance_id="i")
    everything = range(6)
    assert committed(world, ("b", None, 0), partitions=everything) == NONE
    assert committed(world, ("b", None, -1), partitions=everything) == StaleMemberEpochError.code


def test_records_without_epochs_are_read_with_the_epoch_of_the_member() -> None:
    """Kafka before 4.3 wrote such records."""
    world, kept, _ = shared()
    world.records = [without_epochs(key, value) for key, value in world.records]
    world.shard = world.reloaded()
    assert committed(world, ("a", None, FIRST), partitions=kept) == StaleMemberEpochError.code
    assert committed(world, ("a", None, FIRST + 1), partitions=kept) == NONE


def without_epochs(key: bytes, value: bytes | None) -> KeyValue:
    name = type(decode_record_key(GROUP_KEYS, key)).__name__
    if name != "ConsumerGroupCurrentMemberAssignmentKey" or value is None:
        return key, value
    stored: Any = decode_record_value("ConsumerGroupCurrentMemberAssignmentValue", value)
    for row in (*stored.assigned_partitions, *stored.partitions_pending_revocation):
        assert len(row.assignment_epochs) == len(row.partitions)
        row.assignment_epochs = None
    return key, encode_record_value(stored, VALUE_VERSION)
