"""The table of a classic group: the response and the next state for each state and event."""

from collections.abc import Callable
from functools import partial

import pytest

from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX, Budget, Read
from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.coordinator.group.classic.describe import describe_group
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.member import Protocols
from pykafka_core.coordinator.group.classic.states import FOLLOWING, ClassicGroupState
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.protocol.messages import DescribeGroupsResponse
from tests.coordinator.classic.world import (
    CHANGED,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    Operation,
    World,
    beat,
    code_of,
    join,
    leave,
    sync,
)

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState
WAITS = "waits"


@pytest.mark.parametrize("source", ClassicGroupState)
@pytest.mark.parametrize("target", ClassicGroupState)
def test_a_transition_that_is_not_in_the_table_changes_nothing(
    source: ClassicGroupState, target: ClassicGroupState
) -> None:
    group = ClassicGroup("g")
    group.state = source
    if target in FOLLOWING[source]:
        group.move_to(target, 7)
        assert (group.state, group.state_timestamp_ms) == (target, 7)
    else:
        with pytest.raises(AssertionError):
            group.move_to(target, 7)
        assert (group.state, group.state_timestamp_ms) == (source, None)


class Scene(World):
    """A group of a leader, A, and a follower, B, in one of the states."""

    def __init__(self, state: ClassicGroupState) -> None:
        super().__init__()
        self.leader, self.follower = self.joined("A", "B")
        self.old = self.group.generation_id - 1
        if state is not COMPLETING:
            self.submit(sync(self.follower, self.generation))
            self.submit(
                sync(self.leader, self.generation, {self.leader: b"a", self.follower: b"b"})
            )
        if state is EMPTY:
            self.submit(leave(self.leader, self.follower))
        if state is PREPARING:
            self.submit(join(self.follower, protocols=CHANGED))
        assert self.group.state is state

    @property
    def protocols(self) -> Protocols:
        """The protocols of the follower's last join."""
        return CHANGED if self.group.state is PREPARING else RANGE

    @property
    def generation(self) -> int:
        return self.group.generation_id

    def keep_alive(self, duration_ms: int) -> None:
        """Let time pass while both send heartbeats."""
        for _ in range(0, duration_ms, SESSION_MS // 2):
            self.pass_ms(SESSION_MS // 2)
            for member_id in (self.leader, self.follower):
                self.submit(beat(member_id, self.generation))


Event = Callable[[Scene], object]


def request(make: Callable[[Scene], Operation]) -> Event:
    def event(scene: Scene) -> object:
        waiter = scene.submit(make(scene))
        if waiter not in scene.responses:
            return WAITS
        response = scene.responses[waiter]
        return response if isinstance(response, tuple) else code_of(response)

    return event


def commit(make: Callable[[Scene], tuple[str, int]]) -> Event:
    def run(scene: Scene, state: GroupState, waiter: Waiter, result: CoordinatorResult) -> None:
        member_id, generation_id = make(scene)
        state.groups["g"].check_commit(member_id, None, generation_id, 9)
        result.respond(waiter, 0)

    return request(lambda scene: partial(run, scene))


def silence(scene: Scene) -> None:
    scene.pass_ms(SESSION_MS * 3 // 2)


def heartbeats_alone(scene: Scene) -> None:
    scene.keep_alive(REBALANCE_MS)


def described(scene: Scene) -> object:
    read = scene.ask(partial(describe_group, "g", Budget(UNRESERVED_BYTES_MAX)))
    assert isinstance(read, Read)
    response = read.value
    assert isinstance(response, DescribeGroupsResponse.DescribedGroup)
    return response.group_state


EVENTS: dict[str, Event] = {
    "join: new, version 3": request(lambda scene: join()),
    "join: new, version 4": request(lambda scene: join(api_version=4)),
    "join: new, no protocol": request(lambda scene: join(protocols=())),
    "join: new, no type": request(lambda scene: join(protocol_type="")),
    "join: new, unknown protocol": request(lambda scene: join(protocols=(("other", b""),))),
    "join: leader, same": request(lambda scene: join(scene.leader)),
    "join: follower, same": request(lambda scene: join(scene.follower, protocols=scene.protocols)),
    "join: follower, changed": request(lambda scene: join(scene.follower, protocols=CHANGED)),
    "join: a stranger": request(lambda scene: join("stranger")),
    "sync: leader": request(lambda scene: sync(scene.leader, scene.generation)),
    "sync: follower": request(lambda scene: sync(scene.follower, scene.generation)),
    "sync: old generation": request(lambda scene: sync(scene.follower, scene.old)),
    "sync: other type": request(
        lambda scene: sync(scene.leader, scene.generation, protocol=("connect", "range"))
    ),
    "sync: other protocol": request(
        lambda scene: sync(scene.leader, scene.generation, protocol=("consumer", "x"))
    ),
    "sync: a stranger": request(lambda scene: sync("stranger", scene.generation)),
    "heartbeat": request(lambda scene: beat(scene.follower, scene.generation)),
    "heartbeat: old generation": request(lambda scene: beat(scene.follower, scene.old)),
    "heartbeat: a stranger": request(lambda scene: beat("stranger", scene.generation)),
    "leave: follower": request(lambda scene: leave(scene.follower)),
    "leave: leader": request(lambda scene: leave(scene.leader)),
    "leave: all": request(lambda scene: leave(scene.leader, scene.follower)),
    "leave: a stranger": request(lambda scene: leave("stranger")),
    "commit: member": commit(lambda scene: (scene.follower, scene.generation)),
    "commit: old generation": commit(lambda scene: (scene.follower, scene.old)),
    "commit: no member": commit(lambda scene: ("", -1)),
    "commit: a stranger": commit(lambda scene: ("stranger", scene.generation)),
    "silence": silence,
    "heartbeats alone": heartbeats_alone,
    "delete": request(lambda scene: partial(delete_group, "g")),
    "describe": described,
}

COLUMNS = (EMPTY, PREPARING, COMPLETING, STABLE)
# The response and the next state; one column for each previous state.
TABLE: dict[str, tuple[tuple[object, ClassicGroupState], ...]] = {
    "join: new, version 3": ((0, COMPLETING), (WAITS, PREPARING), (WAITS, PREPARING), (WAITS, PREPARING)),
    "join: new, version 4": ((79, EMPTY), (79, PREPARING), (79, COMPLETING), (79, STABLE)),
    "join: new, no protocol": ((23, EMPTY), (23, PREPARING), (23, COMPLETING), (23, STABLE)),
    "join: new, no type": ((23, EMPTY), (23, PREPARING), (23, COMPLETING), (23, STABLE)),
    "join: new, unknown protocol": ((0, COMPLETING), (23, PREPARING), (23, COMPLETING), (23, STABLE)),
    "join: leader, same": ((25, EMPTY), (0, COMPLETING), (0, COMPLETING), (WAITS, PREPARING)),
    "join: follower, same": ((25, EMPTY), (WAITS, PREPARING), (0, COMPLETING), (0, STABLE)),
    "join: follower, changed": ((25, EMPTY), (WAITS, PREPARING), (WAITS, PREPARING), (WAITS, PREPARING)),
    "join: a stranger": ((25, EMPTY), (25, PREPARING), (25, COMPLETING), (25, STABLE)),
    "sync: leader": ((25, EMPTY), (27, PREPARING), (0, STABLE), (0, STABLE)),
    "sync: follower": ((25, EMPTY), (27, PREPARING), (WAITS, COMPLETING), (0, STABLE)),
    "sync: old generation": ((25, EMPTY), (22, PREPARING), (22, COMPLETING), (22, STABLE)),
    "sync: other type": ((25, EMPTY), (23, PREPARING), (23, COMPLETING), (23, STABLE)),
    "sync: other protocol": ((25, EMPTY), (23, PREPARING), (23, COMPLETING), (23, STABLE)),
    "sync: a stranger": ((25, EMPTY), (25, PREPARING), (25, COMPLETING), (25, STABLE)),
    "heartbeat": ((25, EMPTY), (27, PREPARING), (0, COMPLETING), (0, STABLE)),
    "heartbeat: old generation": ((25, EMPTY), (22, PREPARING), (22, COMPLETING), (22, STABLE)),
    "heartbeat: a stranger": ((25, EMPTY), (25, PREPARING), (25, COMPLETING), (25, STABLE)),
    "leave: follower": (((25,), EMPTY), ((0,), PREPARING), ((0,), PREPARING), ((0,), PREPARING)),
    "leave: leader": (((25,), EMPTY), ((0,), COMPLETING), ((0,), PREPARING), ((0,), PREPARING)),
    "leave: all": (((25, 25), EMPTY), ((0, 0), EMPTY), ((0, 0), EMPTY), ((0, 0), EMPTY)),
    "leave: a stranger": (((25,), EMPTY), ((25,), PREPARING), ((25,), COMPLETING), ((25,), STABLE)),
    "commit: member": ((25, EMPTY), (0, PREPARING), (27, COMPLETING), (0, STABLE)),
    "commit: old generation": ((25, EMPTY), (22, PREPARING), (22, COMPLETING), (22, STABLE)),
    "commit: no member": ((0, EMPTY), (25, PREPARING), (25, COMPLETING), (25, STABLE)),
    "commit: a stranger": ((25, EMPTY), (25, PREPARING), (25, COMPLETING), (25, STABLE)),
    # The leader is removed; the follower that waits for it gets a generation without it.
    "silence": ((None, EMPTY), (None, COMPLETING), (None, EMPTY), (None, EMPTY)),
    # A member that does not join, or does not sync, is removed although it sends heartbeats.
    "heartbeats alone": ((None, EMPTY), (None, COMPLETING), (None, EMPTY), (None, STABLE)),
    "delete": ((0, DEAD), (68, PREPARING), (68, COMPLETING), (68, STABLE)),
    "describe": tuple((state.value, state) for state in COLUMNS),
}  # fmt: skip


def test_the_table_has_every_event() -> None:
    assert TABLE.keys() == EVENTS.keys()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", COLUMNS)
def test_every_event_in_every_state(state: ClassicGroupState, event: str) -> None:
    scene = Scene(state)
    group = scene.group
    generation_id = group.generation_id
    response = EVENTS[event](scene)
    expected, following = TABLE[event][COLUMNS.index(state)]
    assert (response, group.state) == (expected, following)
    completed = following in (COMPLETING, EMPTY) and state is not following
    if completed and event != "silence" and event != "heartbeats alone":
        assert group.generation_id == generation_id + 1
    elif not completed:
        assert group.generation_id == generation_id
    assert group.has_members == (following in (PREPARING, COMPLETING, STABLE))


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (join("x"), 25),
        (join("x", "instance"), 25),
        (sync("x", 1), 25),
        (beat("x", 1), 25),
        (leave("x"), 25),
        (leave(("", "instance")), 25),
        (partial(delete_group, "g"), 69),
        (partial(describe_group, "g", Budget(UNRESERVED_BYTES_MAX)), 69),
    ],
)
def test_operations_on_a_missing_group_fail(operation: Operation, code: int) -> None:
    world = World()
    assert world.ask(operation) == code
    assert not world.state.groups
    assert not world.records
