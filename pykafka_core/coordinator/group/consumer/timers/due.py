"""Deadlines in consumer groups."""

from pykafka_core.coordinator.group.consumer.leave import remove_members
from pykafka_core.coordinator.group.consumer.member import MemberState
from pykafka_core.coordinator.group.consumer.timers.keys import ConsumerDue
from pykafka_core.coordinator.group.consumer.timers.keys import (
    DueInConsumerGroup as DueInConsumerGroup,
)
from pykafka_core.coordinator.group.consumer.timers.session import touch, watch_revocation
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult
from pykafka_core.types import NS_PER_MS

RETRY_MS = 5_000
"""Delay before the removal of a member is retried if its records did not fit: ``max.message.bytes``
may be larger by then."""


def run_consumer_due(state: GroupState, key: DueInConsumerGroup, result: CoordinatorResult) -> None:
    """Remove the member whose deadline has passed, unless it has left, or has revoked its
    partitions in time.
    """
    group = state.consumer_groups.get(key.group_id)
    member = None if group is None else group.members.get(key.member_id)
    if group is None or member is None:
        return
    due = key.consumer_due
    if due is ConsumerDue.REBALANCE and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return
    cause = _cause(due, key.member_id)
    try:
        remove_members(state, group, [key.member_id], None, cause, result)
    except BatchFullError:
        # If this was raised, the whole shard with all its groups would be dropped and loaded again.
        state.deadlines.set(key, result.now_ns + RETRY_MS * NS_PER_MS)
        return
    if due is not ConsumerDue.SESSION:
        group.history.note(What.REMOVED, cause, result.now_ms)


def _cause(due: ConsumerDue, member_id: str) -> str:
    match due:
        case ConsumerDue.SESSION:
            return f"the session of member {member_id} ended"
        case ConsumerDue.REBALANCE:
            return f"member {member_id} did not revoke its partitions in time"
        case ConsumerDue.JOIN:
            return f"member {member_id} did not join again in time"
        case ConsumerDue.SYNC:
            return f"member {member_id} did not sync in time"


def arm_loaded_consumers(state: GroupState, result: CoordinatorResult) -> None:
    """Start the sessions of loaded members, and the deadlines for their revocations."""
    for group in state.consumer_groups.values():
        timeout_ms = state.consumer_settings(group.group_id).session_timeout_ms
        for member in group.members.values():
            own_ms = timeout_ms if member.classic is None else member.classic.session_timeout_ms
            touch(state, group.group_id, member.member_id, result.now_ns, own_ms)
            watch_revocation(state, group.group_id, member, result.now_ns)
