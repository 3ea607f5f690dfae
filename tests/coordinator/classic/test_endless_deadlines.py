"""Rebalances that wait for static members: with a rebalance timeout of 0 or less, deadlines must
not run endlessly without time passing.
"""

from functools import partial

import pytest

from pykafka_core.coordinator.group.classic.due import run_due
from pykafka_core.coordinator.group.classic.join import Join, join_group
from pykafka_core.coordinator.group.classic.keys import DueInGroup
from pykafka_core.coordinator.group.classic.leave import leave_group
from pykafka_core.coordinator.group.classic.sync import Sync, sync_group
from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.protocol.messages import JoinGroupResponse, LeaveGroupRequest
from tests.coordinator.classic.world import BYTES_MAX, MS, NO_TOPICS, RANGE, World

TURNS_MAX = 10


def join(instance_id: str | None, rebalance_timeout_ms: int) -> partial[None]:
    return partial(
        join_group,
        Join(
            "g", "", instance_id, "consumer", RANGE, 10_000, rebalance_timeout_ms, "c", "/h", "", 3
        ),
        NO_TOPICS,
    )


def turns_at_once(world: World) -> int:
    """Return the number of deadlines that run until none is due, without time passing."""
    turns, now_ns = 0, world.now_ms * MS
    while world.state.deadlines.next_ns() <= now_ns and turns < TURNS_MAX:
        key = next(world.state.deadlines.take_due(now_ns))
        assert isinstance(key, DueInGroup)
        run_due(world.state, key, CoordinatorResult(now_ns, world.now_ms, BYTES_MAX))
        turns += 1
    return turns


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_static_members_without_a_rejoin_do_not_loop_at_one_instant(
    timeout_ms: int,
) -> None:
    world = World()
    first = world.ask(join("A", timeout_ms))
    assert isinstance(first, JoinGroupResponse)
    world.ask(
        partial(sync_group, Sync("g", first.member_id, "A", first.generation_id, None, None, {}))
    )
    world.submit(join("B", timeout_ms))
    leaving = [LeaveGroupRequest.MemberIdentity(group_instance_id="B")]
    world.submit(partial(leave_group, "g", leaving))
    assert turns_at_once(world) < TURNS_MAX
