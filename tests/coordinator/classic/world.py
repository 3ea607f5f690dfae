"""The state of a group coordinator without a broker: the test sends requests, gets responses and
records, and controls the time.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from pykafka_core.coordinator.group.classic.due import arm_loaded, run_due
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.heartbeat import heartbeat
from pykafka_core.coordinator.group.classic.join import Join, join_group
from pykafka_core.coordinator.group.classic.keys import DueInGroup
from pykafka_core.coordinator.group.classic.leave import leave_group
from pykafka_core.coordinator.group.classic.records import replay_group
from pykafka_core.coordinator.group.classic.sync import Sync, sync_group
from pykafka_core.coordinator.group.consumer.topics import GroupTopic
from pykafka_core.coordinator.group.settings import GroupSettings
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, KeyValue, Waiter
from pykafka_core.errors import KafkaError
from pykafka_core.protocol.messages import (
    HeartbeatRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupResponse,
)
from pykafka_core.types import FOREVER_NS


class NoTopics:
    """A `TopicsView` of a cluster without topics: classic groups do not use it."""

    version: object = None
    offset = 0

    def topic(self, _name: str) -> GroupTopic | None:
        return None

    def matching(self, _regex: str) -> frozenset[str]:
        return frozenset()


NO_TOPICS = NoTopics()
MS = 1_000_000
SESSION_MS, REBALANCE_MS = 10_000, 60_000
RANGE = (("range", b"\0\0\0\0\0\0"),)
CHANGED = (("range", b"\0\0\0\0\0\1\0\1t"),)
BYTES_MAX = 100_000
Operation = Callable[[GroupState, Waiter, CoordinatorResult], None]

SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=0,
    min_session_timeout_ms=6_000,
    max_session_timeout_ms=1_800_000,
    max_size=1_000,
    offset_metadata_bytes_max=4096,
    offsets_retention_ms=10**9,
    offsets_retention_check_interval_ms=600_000,
)


class World:
    """The classic groups of one shard, with their responses and records."""

    def __init__(self, settings: GroupSettings = SETTINGS, bytes_max: int = BYTES_MAX) -> None:
        numbers = count(1)
        self.bytes_max = bytes_max
        self.state = GroupState(settings, lambda: f"uuid{next(numbers)}", lambda _: None)
        self.now_ms = 1_000
        self.responses: dict[int, object] = {}
        self.records: list[KeyValue] = []
        self._waiters = count(1)

    def submit(self, operation: Operation) -> int:
        """Run an operation and return its waiter; checks that a refusal changes nothing."""
        waiter, result = next(self._waiters), self._turn()
        before = dump(self.state)
        try:
            operation(self.state, waiter, result)
        except KafkaError as error:
            assert dump(self.state) == before, "a refusal changes nothing"
            assert not result.records
            assert not result.responses
            result.respond(waiter, error.code)
        self._take(result)
        return waiter

    def ask(self, operation: Operation) -> object:
        """Run an operation; return its response, or None if it waits."""
        return self.responses.get(self.submit(operation))

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; each deadline is run when it is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ns := self.state.deadlines.next_ns()) <= end_ms * MS:
            self.now_ms = max(self.now_ms, -(-due_ns // MS))
            for key in self.state.deadlines.take_due(self.now_ms * MS):
                assert isinstance(key, DueInGroup)
                result = self._turn()
                run_due(self.state, key, result)
                self._take(result)
                break
        self.now_ms = end_ms

    def reload(self) -> "World":
        """Return a world that was loaded from the stored records."""
        other = World(self.state.settings)
        other.now_ms = self.now_ms
        for key, value in self.records:
            replay_group(other.state, key, value)
        result = other._turn()
        arm_loaded(other.state, result)
        other._take(result)
        return other

    @property
    def group(self) -> ClassicGroup:
        """The group of all operations below."""
        return self.state.groups["g"]

    @property
    def is_quiet(self) -> bool:
        """Return whether there is no deadline."""
        return self.state.deadlines.next_ns() == FOREVER_NS

    def _turn(self) -> CoordinatorResult:
        return CoordinatorResult(self.now_ms * MS, self.now_ms, self.bytes_max)

    def _take(self, result: CoordinatorResult) -> None:
        self.records += result.records
        for waiter, response in result.responses:
            assert isinstance(waiter, int)
            assert waiter not in self.responses, "a waiter is answered once"
            self.responses[waiter] = response

    # Groups in the initial states of tests.

    def stable(self, *names: str, **how: Any) -> list[str]:
        """Join members, of which the first one assigns; return their member ids."""
        ids = self.joined(*names, **how)
        for member_id in reversed(ids):
            assignments = {one: one.encode() for one in ids}
            self.submit(sync(member_id, self.group.generation_id, assignments))
        assert self.group.state.value == "Stable"
        return ids

    def joined(self, *names: str, **how: Any) -> list[str]:
        """Join members in one generation; return their member ids."""
        ids: list[str] = []
        for name in names:
            waiter = self.submit(join(client_id=name, **how))
            ids.append(next(reversed(self.group.members)))
            for earlier in ids[:-1]:
                self.submit(join(earlier, client_id=name, **how))
            assert code_of(self.responses[waiter]) == 0
        assert self.group.state.value == "CompletingRebalance"
        return ids


def join(member_id: str = "", instance: str | None = None, **changes: Any) -> Operation:
    """Return a JoinGroup; by default of version 3, which joins at once."""
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": member_id,
        "group_instance_id": instance,
        "protocol_type": "consumer",
        "protocols": RANGE,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "reason": "",
        "api_version": 3,
        **changes,
    }
    return partial(join_group, Join(**fields), NO_TOPICS)


def sync(
    member_id: str,
    generation_id: int,
    assignments: dict[str, bytes] | None = None,
    instance: str | None = None,
    protocol: tuple[str | None, str | None] = (None, None),
) -> Operation:
    """Return a SyncGroup."""
    request = Sync("g", member_id, instance, generation_id, *protocol, assignments or {})
    return partial(sync_group, request)


def beat(member_id: str, generation_id: int, instance: str | None = None) -> Operation:
    """Return a Heartbeat."""
    request = HeartbeatRequest(
        group_id="g",
        member_id=member_id,
        generation_id=generation_id,
        group_instance_id=instance,
    )
    return partial(heartbeat, request)


def leave(*identities: str | tuple[str, str | None]) -> Operation:
    """Return a LeaveGroup of member ids, or of pairs of member id and instance id."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in identities]
    leaving = [
        LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance)
        for member_id, instance in pairs
    ]
    return partial(leave_group, "g", leaving)


def code_of(response: object) -> int:
    """Return the error code of a response, which must exist."""
    assert response is not None
    if isinstance(response, int):
        return response
    code = getattr(response, "error_code", 0)
    assert isinstance(code, int)
    return code


def joined_as(response: object) -> JoinGroupResponse:
    """Return the response to a successful JoinGroup."""
    assert isinstance(response, JoinGroupResponse)
    assert response.error_code == 0
    return response


def assigned(response: object) -> bytes:
    """Return the assignment in the response to a successful SyncGroup."""
    assert isinstance(response, SyncGroupResponse)
    assert response.error_code == 0
    return response.assignment


def dump(state: GroupState) -> object:
    """Return all groups and deadlines, for comparisons."""
    return {
        name: (
            {slot: _plain(getattr(group, slot)) for slot in ClassicGroup.__slots__},
            {
                member.session_key: state.deadlines.get(member.session_key)
                for member in group.members.values()
            },
            state.deadlines.get(group.join_key),
            state.deadlines.get(group.sync_key),
        )
        for name, group in state.groups.items()
    }


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return [(key, _plain(one)) for key, one in value.items()]
    slots: Sequence[str] = getattr(value, "__slots__", ())
    if slots and not isinstance(value, tuple | str):
        return [getattr(value, slot) for slot in slots]
    return value.copy() if isinstance(value, set) else value
