"""The changes of a consumer group by a member's heartbeat, or by a classic member's join.

There are up to four steps, each of which sees the previous ones. The member is created or changed.
The group gets a new epoch if its subscription or the topics have changed. A new target assignment
is calculated for a new epoch, if the last one is old enough. The member takes one step towards its
own target.
"""

from pykafka_core.coordinator.group.consumer.assignment.epochs import begin_epoch, next_epoch
from pykafka_core.coordinator.group.consumer.assignment.reconcile import Target, reconciled
from pykafka_core.coordinator.group.consumer.assignment.target import assignor_name, target_records
from pykafka_core.coordinator.group.consumer.group import NO_TIME_MS, ConsumerGroup
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.member import (
    Assignment,
    ConsumerGroupState,
    ConsumerMember,
)
from pykafka_core.coordinator.group.consumer.records import (
    current_record,
    member_record,
)
from pykafka_core.coordinator.group.consumer.regexes import resolve_regexes
from pykafka_core.coordinator.group.consumer.timers.session import watch_revocation
from pykafka_core.coordinator.group.consumer.topics import (
    TopicsView,
    found_topics,
    metadata_hash,
)
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult

_TOPICS_CHANGED = "the topics that its members subscribe to changed"


def put_member(
    draft: Draft, before: ConsumerMember, after: ConsumerMember, state: GroupState
) -> str | None:
    """Store the member; return the reason for a new assignment, None if it is not needed.

    It is needed if the subscription has changed or, as in Kafka since 4.4, if the group now prefers
    another assignor.

    Raises:
        CoordinatorNotAvailableError: The memory limit of all groups is reached.
    """
    default = state.settings.consumer.assignors[0]
    assignor = assignor_name(draft.group, default)
    known = draft.group.members.get(after.member_id)
    if after != known:
        growth = after.size - (0 if known is None else known.size)
        state.member_memory.check_join(growth, is_new=known is None)
        draft.add([member_record(draft.group.group_id, after)])
    if _subscription(after) != _subscription(before):
        what = "joined" if known is None else "changed its subscription"
        return f"member {after.member_id} {what}"
    preferred = assignor_name(draft.group, default)
    return None if preferred == assignor else f"its members prefer the assignor {preferred}"


def _subscription(member: ConsumerMember) -> tuple[frozenset[str], str | None]:
    return member.topic_names, member.topic_regex


def renew(
    draft: Draft, view: TopicsView, state: GroupState, cause: str | None, now_ms: int
) -> None:
    """Start a new epoch if there is a reason, and calculate a new target assignment if it is due.

    Raises:
        UnknownServerError: The group is in the last epoch.
    """
    if resolve_regexes(draft, view, now_ms) and cause is None:
        cause = _TOPICS_CHANGED
    _refresh_epoch(view, draft, cause)
    if is_assignment_due(draft.group, state, now_ms):
        default = state.settings.consumer.assignors[0]
        draft.add(target_records(draft.group, view, default, now_ms))


def is_assignment_due(group: ConsumerGroup, state: GroupState, now_ms: int) -> bool:
    """Return whether a target assignment is due, like ``canComputeNextTargetAssignment`` in Kafka.

    If the clock was set back, it is due at once.
    """
    if group.epoch <= group.assignment_epoch:
        return False
    interval_ms = state.consumer_settings(group.group_id).assignment_interval_ms
    since_ms = now_ms - group.assignment_time_ms
    return group.assignment_time_ms == NO_TIME_MS or not 0 <= since_ms < interval_ms


def _refresh_epoch(view: TopicsView, draft: Draft, cause: str | None) -> None:
    """Start a new epoch if there is a cause, or if the subscribed topics have changed."""
    group = draft.group
    is_new_epoch = cause is not None
    if not is_new_epoch and group.topics_version is view.version:
        return
    found = metadata_hash(found_topics(view, set(group.subscribed_names())).values())
    if is_new_epoch or found != group.metadata_hash:
        begin_epoch(draft, next_epoch(group), found, cause or _TOPICS_CHANGED)


def reconcile(
    draft: Draft,
    member_id: str,
    owned: Assignment | None,
    state: GroupState,
    result: CoordinatorResult,
) -> ConsumerMember:
    """Take the member's next step, and commit the draft; return the changed member.

    Raises:
        FencedMemberEpochError: A later version wrote the member's state, and the member still owns
            partitions.
        BatchFullError: The changes do not fit into one batch.
    """
    group = draft.group
    before = group.members[member_id]
    target = Target(group.assignment_epoch, group.target(member_id))
    after = reconciled(before, target, owned, group.is_free)
    if after is before:
        draft.commit(state, result)
    else:
        draft.commit(state, result, [current_record(group.group_id, after)])
        if draft.group.state is ConsumerGroupState.STABLE:
            text = f"all members have their partitions of epoch {group.epoch}"
            draft.group.history.note(What.ASSIGNED, text, result.now_ms)
        watch_revocation(state, group.group_id, after, result.now_ns)
    return after
