"""A step that all members of a group wait for is one turn, with a few calls for each of them.

For 5,000 members it took 78 ms, for which the heartbeats of other groups had to wait. The tests
count calls, because these do not depend on the load of the machine.
"""

import pytest

from pykafka_core.coordinator.group.classic.describe import list_groups
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from tests.coordinator.classic.world import SETTINGS, Operation, World, join, sync
from tests.support.calls import counting_calls

COUNT = 500
TWO = (("range", b"\0" * 30), ("cooperative-sticky", b"\0" * 30))
ROOM = 10**9


class LargeWorld(World):
    """Runs operations without a check that a refusal changes nothing: the check would take longer
    than the operations.
    """

    def __init__(self) -> None:
        super().__init__(SETTINGS._replace(max_size=COUNT), ROOM)

    def submit(self, operation: Operation) -> int:
        waiter, turn = next(self._waiters), self._turn()
        operation(self.state, waiter, turn)
        self._take(turn)
        return waiter

    def calls_of(self, operation: Operation) -> float:
        """Return the number of calls per member."""
        with counting_calls() as calls:
            self.submit(operation)
        return calls.count / COUNT


def all_but_one_joined() -> tuple[LargeWorld, str]:
    """Return a rebalance that only waits for the first member, and the id of that member."""
    world = LargeWorld()
    for number in range(COUNT):
        world.submit(join(client_id=f"c{number}", api_version=3, protocols=TWO))
    return world, next(iter(world.group.members))


@pytest.fixture
def begun() -> LargeWorld:
    """A generation in which all other members have synced and wait for the leader's assignment."""
    world, first = all_but_one_joined()
    world.submit(join(first, protocols=TWO))
    leader_id, generation_id = world.group.leader_id, world.group.generation_id
    for member_id in world.group.members:
        if member_id != leader_id:
            world.submit(sync(member_id, generation_id))
    return world


def test_a_rebalance_completes_with_few_calls_for_each_member() -> None:
    world, first = all_but_one_joined()
    assert world.calls_of(join(first, protocols=TWO)) < 24
    assert world.group.state.value == "CompletingRebalance"


def test_assignment_is_processed_with_few_calls_for_each_member(begun: LargeWorld) -> None:
    leader_id = begun.group.leader_id or ""
    parts = dict.fromkeys(begun.group.members, b"\0" * 30)
    assert begun.calls_of(sync(leader_id, begun.group.generation_id, parts)) < 19
    assert begun.group.state.value == "Stable"


def test_groups_are_listed_with_few_calls_for_each() -> None:
    world = LargeWorld()
    for number in range(COUNT):
        world.state.groups[f"g{number}"] = ClassicGroup(f"g{number}")
    calls = world.calls_of(
        lambda state, waiter, turn: list_groups(set(), set(), state, waiter, turn)
    )
    assert calls < 7
