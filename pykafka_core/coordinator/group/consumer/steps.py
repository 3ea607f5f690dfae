"""What a member's heartbeat, or a classic member's join, does to its consumer group.

Up to four things, each of which sees the ones before: it makes or changes the member; the group comes to a new epoch if
its subscription or the topics have changed; a new target assignment is made for a new epoch; and the member takes a
step towards its own target.
"""

from pykafka_core.coordinator.group.consumer.draft import Draft
from pykafka_core.coordinator.group.consumer.epochs import next_epoch
from pykafka_core.coordinator.group.consumer.member import Assignment, ConsumerMember
from pykafka_core.coordinator.group.consumer.reconcile import Target, reconciled
from pykafka_core.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
)
from pykafka_core.coordinator.group.consumer.regexes import resolve_regexes
from pykafka_core.coordinator.group.consumer.session import watch_revocation
from pykafka_core.coordinator.group.consumer.target import target_records
from pykafka_core.coordinator.group.consumer.topics import (
    TopicsView,
    found_topics,
    metadata_hash,
)
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn


def put_member(
    draft: Draft, before: ConsumerMember, after: ConsumerMember, state: GroupState
) -> bool:
    """Take in what a member says of itself; whether the group needs another assignment.

    Raises:
        CoordinatorNotAvailableError: All groups together hold as much as they may.
    """
    known = draft.group.members.get(after.member_id)
    if after != known:
        growth = after.size - (0 if known is None else known.size)
        state.member_memory.check_join(growth, is_new=known is None)
        draft.add([member_record(draft.group.group_id, after)])
    return _subscription(after) != _subscription(before)


def _subscription(member: ConsumerMember) -> tuple[frozenset[str], str | None]:
    """What brings another epoch. Another assignor does not: it is asked when there is something to assign."""
    return member.topic_names, member.topic_regex


def renew(
    draft: Draft, view: TopicsView, state: GroupState, is_new_epoch: bool, now_ms: int
) -> None:
    """Come to a new epoch if there is a reason, and to a new target assignment with it.

    Raises:
        UnknownServerError: The group is in the last epoch.
    """
    is_new_epoch |= resolve_regexes(draft, view, now_ms)
    _refresh_epoch(view, draft, is_new_epoch)
    if draft.group.epoch > draft.group.assignment_epoch:
        draft.add(target_records(draft.group, view, state.settings.consumer.assignors[0]))


def _refresh_epoch(view: TopicsView, draft: Draft, is_new_epoch: bool) -> None:
    """Come to a new epoch if the subscription has changed, or the topics that the group is subscribed to."""
    group = draft.group
    is_new_epoch |= group.epoch == 0
    if not is_new_epoch and group.topics_version is view.version:
        return
    found = metadata_hash(found_topics(view, set(group.subscribed_names())).values())
    if is_new_epoch or found != group.metadata_hash:
        draft.add([epoch_record(group.group_id, next_epoch(group), found)])


def reconcile(
    draft: Draft, member_id: str, owned: Assignment | None, state: GroupState, turn: Turn
) -> ConsumerMember:
    """Let the member take a step, and commit all that was drafted.

    Raises:
        FencedMemberEpochError: A later version wrote its state, and it still owns partitions.
        TurnFullError: What changes does not fit into one batch.
    """
    group = draft.group
    before = group.members[member_id]
    target = Target(group.assignment_epoch, group.target(member_id))
    after = reconciled(before, target, owned, group.is_free)
    if after is before:
        draft.commit(state, turn)
    else:
        draft.commit(state, turn, [current_record(group.group_id, after)])
        watch_revocation(state, group.group_id, after, turn.now_ns)
    return after
