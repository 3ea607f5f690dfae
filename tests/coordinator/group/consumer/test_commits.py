"""Commits of offsets in a consumer group: who may make them, in which epoch."""

from functools import partial

import pytest

from pykafka_core.coordinator.group.offsets.commit import Commit, commit_offsets
from pykafka_core.coordinator.group.offsets.transaction import (
    TransactionalCommit,
    begin_commit,
    commit_in_transaction,
)
from pykafka_core.coordinator.group.offsets.transactions import Guard
from pykafka_core.errors import (
    NONE,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from tests.coordinator.group.consumer.world import FIRST, GROUP, World

Who = tuple[str, str | None, int]
NOBODY = ("", None, -1)
MEMBER = ("a", None, FIRST)
OLD, NEW = ("a", None, FIRST - 1), ("a", None, FIRST + 1)
STRANGER = ("b", None, FIRST)


def commit_of(who: Who, api_version: int | None) -> Commit:
    member_id, instance_id, epoch = who
    return Commit(GROUP, member_id, instance_id, epoch, [], api_version)


def committed(world: World, who: Who, api_version: int = 9) -> object:
    answer = world.ask(partial(commit_offsets, commit_of(who, api_version)))
    return NONE if answer is None else answer


def committed_in_transaction(world: World, who: Who) -> object:
    asked = TransactionalCommit(commit_of(who, None), 7, 3)
    guard = world.ask(partial(begin_commit, asked))
    assert isinstance(guard, Guard)
    answer = world.ask(partial(commit_in_transaction, asked, guard))
    return NONE if answer is None else answer


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
def test_a_group_with_members_judges_who_commits(
    who: Who, code: int, transactional_code: int
) -> None:
    world = World()
    world.join("a")
    assert committed(world, who) == code
    assert committed_in_transaction(world, who) == transactional_code


def test_a_version_without_member_epochs_is_for_groups_without_members() -> None:
    world = World()
    world.join("a")
    assert committed(world, MEMBER, api_version=8) == UnsupportedVersionError.code
    world.leave("a")
    assert committed(world, NOBODY, api_version=8) == NONE
