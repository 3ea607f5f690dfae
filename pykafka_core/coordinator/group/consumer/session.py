"""Deadlines of a consumer group's members: their sessions, and the time they have to give partitions up."""

from pykafka_core.coordinator.deadlines import NS_PER_MS
from pykafka_core.coordinator.group.consumer.keys import ConsumerDue, DueInConsumerGroup
from pykafka_core.coordinator.group.consumer.member import (
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from pykafka_core.coordinator.group.state import GroupState


def touch(state: GroupState, group_id: str, member_id: str, now_ns: int, timeout_ms: int) -> None:
    """A member was heard of: its session begins again."""
    key = DueInConsumerGroup(ConsumerDue.SESSION, group_id, member_id)
    state.deadlines.set(key, now_ns + timeout_ms * NS_PER_MS)


def watch_revocation(state: GroupState, group_id: str, member: ConsumerMember, now_ns: int) -> None:
    """Begin or end the time in which a member is to give its partitions up; one that is away has done so."""
    key = DueInConsumerGroup(ConsumerDue.REBALANCE, group_id, member.member_id)
    is_away = member.epoch == LEAVE_STATIC_EPOCH
    # A classic one is to join or to sync in that time, whatever it gives up.
    gives_up = member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None
    if gives_up and not is_away:
        watch(state, ConsumerDue.REBALANCE, group_id, member, now_ns)
    else:
        state.deadlines.cancel(key)


def watch(
    state: GroupState, what: ConsumerDue, group_id: str, member: ConsumerMember, now_ns: int
) -> None:
    """A member has its rebalance timeout for something, from now on."""
    key = DueInConsumerGroup(what, group_id, member.member_id)
    state.deadlines.set(key, now_ns + max(member.rebalance_timeout_ms, 0) * NS_PER_MS)


def forget_deadlines(state: GroupState, group_id: str, member_id: str) -> None:
    """A member is gone."""
    for what in ConsumerDue:
        state.deadlines.cancel(DueInConsumerGroup(what, group_id, member_id))
