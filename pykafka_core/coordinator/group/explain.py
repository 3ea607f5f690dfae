"""Why a group rebalances or waits: the coordinator's view as values and as sentences.

Kafka has no API for this: DescribeGroups returns the state, but not the members that the group
waits for, nor past events.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.member import ConsumerGroupState, MemberState
from pykafka_core.coordinator.group.history import Event, What
from pykafka_core.coordinator.group.offsets.deleted_topics import current_offsets
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.types import NS_PER_MS

MEMBERS_MAX = 1_000
OFFSETS_MAX = 10_000
"""Limit for one group. `GroupView.is_whole` is False if members or offsets are omitted."""
NAMED_MAX = 5
NAMES_MAX = 10_000
"""Maximum number of topics, and of regular expressions, of one group that are looked up."""
_OFTEN = 3


class MemberView(NamedTuple):
    """A member.

    ``is_waited_for``: the rebalance continues only when the member responds or its timeout passes.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    is_leader: bool
    is_waited_for: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.group_instance_id or self.member_id} ({self.client_host.lstrip('/')})"


class OffsetView(NamedTuple):
    """A committed offset."""

    topic: str
    partition: int
    offset: int
    commit_timestamp_ms: int


class GroupView(NamedTuple):
    """A group at one moment.

    Attributes:
        state_since_ms: Time in this state; None if unknown.
        pending_members: Number of clients that received a member id and have not joined with it.
        due_in_ms: Time until the rebalance continues without the missing members; None without a
            deadline.
        is_initial: The first rebalance of an empty group waits for more members.
        missing: Subscribed topics that do not exist, as text.
        is_whole: No members or offsets are omitted.
    """

    group_id: str
    state: str
    state_since_ms: int | None
    generation_id: int
    protocol_name: str | None
    members: Sequence[MemberView]
    pending_members: int
    due_in_ms: int | None
    is_initial: bool
    rebalance_reason: str
    history: Sequence[Event]
    offsets: Sequence[OffsetView]
    missing: Sequence[str]
    is_whole: bool


def view_group(state: GroupState, group_id: str, now_ns: int, now_ms: int) -> GroupView | None:
    """Return a view of the group; None if it does not exist."""
    group = state.any_group(group_id)
    topics = dict(current_offsets(state, state.offsets.topics(group_id)))
    if group is None and not topics:
        return None
    found = [
        OffsetView(topic, partition, one.offset, one.commit_timestamp_ms)
        for topic, partitions in topics.items()
        for partition, one in partitions.items()
    ]
    if isinstance(group, ConsumerGroup):
        return _of_consumers(state, group, found)
    if group is None:
        group = ClassicGroup(group_id)
    since_ms = group.state_timestamp_ms
    return GroupView(
        group_id=group_id,
        state=str(group.state.value),
        state_since_ms=None if since_ms is None else max(0, now_ms - since_ms),
        generation_id=group.generation_id,
        protocol_name=group.protocol_name,
        members=[_view(group, one) for one in islice(group.members.values(), MEMBERS_MAX)],
        pending_members=len(group.pending_members),
        due_in_ms=_due_in_ms(state, group, now_ns),
        is_initial=group.initial_delay is not None,
        rebalance_reason=group.rebalance_reason,
        history=list(group.history),
        offsets=found[:OFFSETS_MAX],
        missing=_missing_topics(state, group.subscribed_topics() or ()),
        is_whole=len(group.members) <= MEMBERS_MAX and len(found) <= OFFSETS_MAX,
    )


def _of_consumers(
    state: GroupState, group: ConsumerGroup, found: Sequence[OffsetView]
) -> GroupView:
    """Return a view of a consumer group. The members that it waits for must revoke partitions."""
    members = [
        MemberView(
            member_id=one.member_id,
            group_instance_id=one.instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            is_leader=False,
            is_waited_for=one.state is MemberState.UNREVOKED_PARTITIONS,
            reason="",
        )
        for one in islice(group.members.values(), MEMBERS_MAX)
    ]
    return GroupView(
        group_id=group.group_id,
        state=str(group.state.value),
        state_since_ms=None,
        generation_id=group.epoch,
        protocol_name=None,
        members=members,
        pending_members=0,
        due_in_ms=None,
        is_initial=False,
        rebalance_reason="",
        history=list(group.history),
        offsets=found[:OFFSETS_MAX],
        missing=[
            *_missing_topics(state, islice(group.subscribed_names(), NAMES_MAX)),
            *_unmatched(group),
        ],
        is_whole=len(group.members) <= MEMBERS_MAX and len(found) <= OFFSETS_MAX,
    )


def _missing_topics(state: GroupState, names: Iterable[str]) -> list[str]:
    return [f"topic {name}" for name in sorted(set(names)) if state.topic_id(name) is None]


def _unmatched(group: ConsumerGroup) -> list[str]:
    return [
        f"a topic that matches {regex}"
        for regex in sorted(islice(group.own_regexes(), NAMES_MAX))
        if regex in group.regexes and not group.regexes[regex].topics
    ]


def _view(group: ClassicGroup, member: Member) -> MemberView:
    return MemberView(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        is_leader=group.leader_id == member.member_id,
        is_waited_for=_is_waited_for(group, member),
        reason=member.reason,
    )


def _is_waited_for(group: ClassicGroup, member: Member) -> bool:
    match group.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            return member.join_waiter is None
        case ClassicGroupState.COMPLETING_REBALANCE:
            return member.member_id in group.pending_sync
        case _:
            return False


def _due_in_ms(state: GroupState, group: ClassicGroup, now_ns: int) -> int | None:
    keys = {
        ClassicGroupState.PREPARING_REBALANCE: group.join_key,
        ClassicGroupState.COMPLETING_REBALANCE: group.sync_key,
    }
    key = keys.get(group.state)
    due_ns = None if key is None else state.deadlines.get(key)
    return None if due_ns is None else max(0, (due_ns - now_ns) // NS_PER_MS)


def explain(view: GroupView) -> list[str]:
    """Return sentences that describe the current state, and possible remedies."""
    return [*_now(view), *_nowhere(view), *_lately(view)]


def _now(view: GroupView) -> Iterator[str]:
    waited_for = [one for one in view.members if one.is_waited_for]
    since = "" if view.state_since_ms is None else f" for {_seconds(view.state_since_ms)}"
    match view.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            reason = view.rebalance_reason.removesuffix(": ") or "its reason is not known"
            yield f"It has been rebalancing{since}: {reason}."
            yield from _missing(view, waited_for)
        case ClassicGroupState.COMPLETING_REBALANCE:
            names = _named(waited_for) or "none"
            yield f"Generation {view.generation_id} has had no assignment{since}. Members without a SyncGroup: {names}."
            yield from _leader_missing(waited_for)
        case ClassicGroupState.STABLE:
            count = len(view.members)
            yield f"It has been stable{since}, generation {view.generation_id}, {_counted(count, 'member')}."
        case ConsumerGroupState.ASSIGNING.value | ConsumerGroupState.RECONCILING.value:
            names = _named(waited_for) or "none; members take over with their next heartbeats"
            yield f"Members of epoch {view.generation_id} exchange partitions. Members that must revoke some: {names}."
        case _:
            yield f"It has had no members{since}: no consumer reads for this group."


def _missing(view: GroupView, waited_for: Sequence[MemberView]) -> Iterator[str]:
    due = "" if view.due_in_ms is None else f" in {_seconds(view.due_in_ms)}"
    if view.is_initial:
        yield f"It waits for more members to join (group.initial.rebalance.delay.ms) and continues{due}."
        return
    if waited_for:
        yield (
            f"It waits for {_named(waited_for)} to rejoin, and continues without them{due}. Consumers rejoin in "
            "poll(): such a consumer may be busy with its records, or dead."
        )
    if view.pending_members:
        yield (
            f"It waits for {_counted(view.pending_members, 'new client')} with a member id that did not rejoin; "
            "the wait ends with their session timeout."
        )


def _leader_missing(waited_for: Sequence[MemberView]) -> Iterator[str]:
    leader = next((one for one in waited_for if one.is_leader), None)
    if leader is not None:
        yield f"The leader {leader} makes the assignment; all others wait for it."


def _nowhere(view: GroupView) -> Iterator[str]:
    if view.missing:
        yield (
            f"Its members subscribe to topics that do not exist, and read nothing there: {_some(view.missing)}."
        )


def _lately(view: GroupView) -> Iterator[str]:
    rebalances = [one for one in view.history if one.what is What.REBALANCE]
    if len(rebalances) >= _OFTEN:
        over_ms = rebalances[-1].time_ms - rebalances[0].time_ms
        yield f"It started {len(rebalances)} rebalances within {_seconds(over_ms)}; the last: {rebalances[-1].text}."
    texts = [one.text for one in view.history]
    if any("poll timeout" in text for text in texts):
        yield "A consumer left because it did not poll: raise max.poll.interval.ms, or lower max.poll.records."
    if any(text.startswith("the session of member") for text in texts):
        yield (
            "A member's session ended without a LeaveGroup: its process died, paused, or lost the network. If it "
            "is alive, raise session.timeout.ms."
        )
    if any(one.what is What.FENCED for one in view.history):
        yield "Members were fenced: give each running consumer its own group.instance.id."
    if any(one.what is What.REMOVED for one in view.history):
        yield "Members were removed because they were too slow: raise max.poll.interval.ms (rebalance.timeout.ms)."


def _named(members: Sequence[MemberView]) -> str:
    return _some([str(one) for one in members])


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
