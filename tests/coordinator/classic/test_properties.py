"""Random histories of a group: its invariants hold after each step."""

from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.protocol.messages import JoinGroupResponse
from tests.coordinator.classic.world import (
    CHANGED,
    RANGE,
    SETTINGS,
    World,
    beat,
    join,
    leave,
    sync,
)

TWO = (("sticky", b""), ("range", b""))
INSTANCES = [None, None, "a", "b"]
LONG_MS = 10 * 60_000

wishes = st.sampled_from([RANGE, CHANGED, TWO])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("new"), st.sampled_from(INSTANCES), st.sampled_from([3, 4, 9]), wishes),
        st.tuples(st.just("join"), st.integers(0, 9), wishes),
        st.tuples(st.just("sync"), st.integers(0, 9), st.integers(-1, 0)),
        st.tuples(st.just("beat"), st.integers(0, 9), st.integers(-1, 0)),
        st.tuples(st.just("leave"), st.lists(st.integers(0, 9), max_size=3)),
        st.tuples(st.just("wait"), st.sampled_from([1, 999, 3_000, 10_000, 61_000])),
    ),
    max_size=40,
)  # fmt: skip


class Life(World):
    """A group, and every member id that was ever assigned."""

    def __init__(self, delay_ms: int, size_max: int) -> None:
        super().__init__(SETTINGS._replace(initial_rebalance_delay_ms=delay_ms, max_size=size_max))
        self.ids: list[tuple[str, str | None]] = [("stranger", None)]
        self.asked = 0

    def step(self, kind: str, *arguments: object) -> None:
        getattr(self, f"do_{kind}")(*arguments)

    def do_new(
        self, instance: str | None, version: int, protocols: tuple[tuple[str, bytes], ...]
    ) -> None:
        asked = join(instance=instance, api_version=version, protocols=protocols)
        response = self.count(asked)
        if isinstance(response, JoinGroupResponse) and response.member_id:
            self.ids.append((response.member_id, instance))
        group = self.state.groups.get("g")
        if group is not None and group.members:
            newest = next(reversed(group.members.values()))
            self.ids.append((newest.member_id, newest.group_instance_id))

    def do_join(self, which: int, protocols: tuple[tuple[str, bytes], ...]) -> None:
        member_id, instance = self.pick(which)
        self.count(join(member_id, instance, api_version=9, protocols=protocols))

    def do_sync(self, which: int, behind: int) -> None:
        member_id, instance = self.pick(which)
        parts = {one: one.encode() for one, _ in self.ids}
        self.count(sync(member_id, self.generation + behind, parts, instance))

    def do_beat(self, which: int, behind: int) -> None:
        member_id, instance = self.pick(which)
        self.count(beat(member_id, self.generation + behind, instance))

    def do_leave(self, which: list[int]) -> None:
        self.count(leave(*(self.pick(one) for one in which)))

    def do_wait(self, duration_ms: int) -> None:
        self.pass_ms(duration_ms)

    def count(self, operation: object) -> object:
        self.asked += 1
        return self.ask(operation)  # type: ignore[arg-type]

    def pick(self, which: int) -> tuple[str, str | None]:
        return self.ids[-1 - which % len(self.ids)]

    @property
    def generation(self) -> int:
        group = self.state.groups.get("g")
        return group.generation_id if group else 0

    def check(self) -> None:
        """Check the invariants between two steps."""
        for group in self.state.groups.values():
            members = group.members
            assert (group.state is ClassicGroupState.EMPTY) <= (not members)
            assert group.leader_id is None if not members else group.leader_id in members
            waiting = [one for one in members.values() if one.join_waiter is not None]
            assert len(waiting) == group.awaiting_join
            assert not waiting or group.state is ClassicGroupState.PREPARING_REBALANCE
            syncing = [one for one in members.values() if one.sync_waiter is not None]
            assert not syncing or group.state is ClassicGroupState.COMPLETING_REBALANCE
            instances = {one.group_instance_id: one.member_id for one in members.values()}
            instances.pop(None, None)
            assert instances == group.static_members
            assert group.pending_sync <= members.keys()
            assert not group.pending_members.keys() & members.keys()


@given(steps, st.sampled_from([0, 3_000]), st.sampled_from([2, 1_000]))
def test_generations_grow_by_one_and_every_request_is_answered(
    history: list[tuple[str, *tuple[object, ...]]], delay_ms: int, size_max: int
) -> None:
    life = Life(delay_ms, size_max)
    for kind, *arguments in history:
        before = life.generation
        life.step(kind, *arguments)
        assert life.generation - before in ((0, 1) if kind != "wait" else range(9))
        life.check()
    life.pass_ms(LONG_MS)
    life.check()
    assert len(life.responses) == life.asked, "everybody who asked was answered, once"
    assert life.is_quiet
    assert all(not group.members for group in life.state.groups.values())


@given(steps)
def test_stored_group_is_the_last_stable_or_empty_one(
    history: list[tuple[str, *tuple[object, ...]]],
) -> None:
    life = Life(0, 1_000)
    for kind, *arguments in history:
        life.step(kind, *arguments)
        group = life.state.groups.get("g")
        if group is None or group.state not in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY):
            continue
        assert _stored(life.reload().group) == _stored(group)


def _stored(group: ClassicGroup) -> object:
    """Return the stored part of a group: without the time in its state, pending requests, and
    protocols that were not selected.
    """
    members = {
        one.member_id: (
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.session_timeout_ms,
            one.rebalance_timeout_ms,
            one.assignment,
            one.metadata(group.protocol_name),
        )
        for one in group.members.values()
    }
    return group.state, group.generation_id, group.protocol_name, group.leader_id, members
