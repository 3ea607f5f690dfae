"""The memory of the members of all groups is counted exactly, and is limited.

Members with 1 MiB of metadata, whose clients disconnected at once, remained until their session
timeouts: 150 groups used 600 MB.
"""

from collections.abc import Callable
from sys import getsizeof

import pytest
from hypothesis import given

from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.coordinator.group.member_memory import MemberMemory
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.errors import CoordinatorNotAvailableError, MemberIdRequiredError
from pykafka_core.protocol.messages import JoinGroupResponse
from tests.coordinator.classic.test_properties import Life, steps
from tests.coordinator.classic.world import (
    REBALANCE_MS,
    SESSION_MS,
    Operation,
    World,
    code_of,
    join,
    joined_as,
    leave,
    sync,
)

NOT_AVAILABLE = CoordinatorNotAvailableError.code
MEMBER_ID_REQUIRED = MemberIdRequiredError.code
LARGE = (("range", bytes(50_000)),)


def of_members(state: GroupState) -> int:
    """Return the memory of the members, computed from all values that clients sent."""
    groups = state.groups.values()
    pending = sum(1024 + getsizeof(one) for group in groups for one in group.pending_members)
    return pending + sum(
        1024
        + 2 * (getsizeof(member.client_id) + getsizeof(member.group_instance_id or ""))
        + sum(160 + getsizeof(name) + len(metadata) for name, metadata in member.protocols)
        + len(member.assignment)
        for group in groups
        for member in group.members.values()
    )


def full_world() -> tuple[World, str]:
    """Return a stable group with one member, without memory for another one."""
    world = World()
    (member_id,) = world.stable("a", protocols=LARGE)
    world.state.member_memory.bytes_max = world.state.member_memory.held
    return world, member_id


@given(steps)
def test_count_is_the_sum_over_all_members_after_any_history(
    history: list[tuple[str, *tuple[object, ...]]],
) -> None:
    life = Life(0, 5)
    for kind, *arguments in history:
        life.step(kind, *arguments)
        assert life.state.member_memory.held == of_members(life.state)
        other = life.reload()
        assert other.state.member_memory.held == of_members(other.state)


def test_group_that_is_loaded_again_is_counted_once() -> None:
    world = World()
    world.stable("a", protocols=LARGE)
    world.records *= 3
    other = world.reload()
    assert other.state.member_memory.held == of_members(other.state) > 50_000


def test_dropped_shard_releases_its_memory() -> None:
    memory = MemberMemory()
    world = World()
    world.state.member_memory = memory
    world.stable("a", "b")
    assert memory.held
    del world
    assert memory.held == 0


def test_wide_characters_count_with_their_size() -> None:
    """With one wide character, Python uses four bytes for each character of the text."""
    plain, wide = World(), World()
    plain.stable("a" * 32_001)
    wide.stable("a" * 32_000 + "\N{GRINNING FACE}")
    growth = wide.state.member_memory.held - plain.state.member_memory.held
    assert growth > 90_000


def test_member_ids_that_were_never_used_are_counted() -> None:
    """They remain until the session timeouts of their clients: 6,000 of them used 195 MB."""
    world = World()
    memory = world.state.member_memory
    memory.bytes_max = 1_000_000
    wide = "a" * 7_999 + "\N{GRINNING FACE}"
    codes = [
        code_of(world.ask(join(client_id=wide, group_id=f"g{number % 10}", api_version=9)))
        for number in range(100)
    ]
    assert 10 < codes.count(MEMBER_ID_REQUIRED) < 1_000_000 / (4 * len(wide))
    assert set(codes) == {MEMBER_ID_REQUIRED, NOT_AVAILABLE}
    assert memory.held == of_members(world.state) <= memory.bytes_max
    world.pass_ms(SESSION_MS)
    assert memory.held == 0


@pytest.mark.parametrize("goes", [leave, lambda one: join(one, group_id="g", api_version=9)])
def test_used_or_abandoned_member_id_is_no_longer_counted(
    goes: Callable[[str], Operation],
) -> None:
    world = World()
    response = world.ask(join(api_version=9))
    assert isinstance(response, JoinGroupResponse)
    assert world.state.member_memory.held
    world.submit(goes(response.member_id))
    assert not world.group.pending_members
    assert world.state.member_memory.held == of_members(world.state)


def test_deleted_group_releases_its_memory() -> None:
    world = World()
    world.stable("a")
    world.pass_ms(REBALANCE_MS)
    world.submit(lambda state, waiter, turn: delete_group("g", state, waiter, turn))
    assert "g" not in world.state.groups
    assert world.state.member_memory.held == 0


def test_new_member_above_the_memory_limit_gets_coordinator_not_available() -> None:
    world, _ = full_world()
    assert code_of(world.ask(join(group_id="h"))) == NOT_AVAILABLE
    assert code_of(world.ask(join(group_id="h", api_version=9))) == NOT_AVAILABLE
    assert "h" not in world.state.groups


def test_new_member_joins_after_others_have_left() -> None:
    world, _ = full_world()
    world.pass_ms(REBALANCE_MS)
    joined_as(world.ask(join(group_id="h")))


def test_members_rejoin_and_sync_while_memory_is_full() -> None:
    world, member_id = full_world()
    for generation_id in (2, 3):
        assert joined_as(world.ask(join(member_id, protocols=LARGE))).generation_id == generation_id
        part = {member_id: member_id.encode()}
        assert code_of(world.ask(sync(member_id, generation_id, part))) == 0
        assert world.group.state.value == "Stable"


def test_static_member_returns_while_memory_is_full() -> None:
    world = World()
    world.stable("a", instance="i", protocols=LARGE)
    world.state.member_memory.bytes_max = world.state.member_memory.held
    joined_as(world.ask(join(instance="i", client_id="a", protocols=LARGE, api_version=9)))


def test_member_that_would_exceed_the_memory_limit_is_unchanged() -> None:
    world, member_id = full_world()
    grown = (*LARGE, ("sticky", b""))
    assert code_of(world.ask(join(member_id, protocols=grown))) == NOT_AVAILABLE
    assert world.group.members[member_id].protocols == LARGE
    assert world.group.state.value == "Stable"


def test_assignment_above_the_memory_limit_is_not_kept() -> None:
    world, member_id = full_world()
    joined_as(world.ask(join(member_id, protocols=LARGE)))
    response = world.ask(sync(member_id, 2, {member_id: bytes(1_000)}))
    assert code_of(response) == NOT_AVAILABLE
    assert world.state.member_memory.held <= world.state.member_memory.bytes_max
    assert world.group.state.value == "PreparingRebalance"


def test_memory_reserved_for_assignments_is_not_used_by_joins() -> None:
    world, member_id = full_world()
    memory = world.state.member_memory
    memory.bytes_max = memory.held + 2_000
    assert code_of(world.ask(join(group_id="h"))) == NOT_AVAILABLE
    joined_as(world.ask(join(member_id, protocols=LARGE)))
    assert code_of(world.ask(sync(member_id, 2, {member_id: bytes(1_000)}))) == 0
