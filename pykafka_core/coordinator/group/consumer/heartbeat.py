"""ConsumerGroupHeartbeat: a member joins, lives, is told its partitions, and says which it owns.

A heartbeat does up to four things, each of which sees the ones before: it makes or changes the member; the group comes
to a new epoch if its subscription or the topics have changed; a new target assignment is made for a new epoch; and the
member takes a step towards its own target.
"""

from typing import TypeVar

from pykafka_core.coordinator.group.consumer.beat import NO_TIMEOUT, Heartbeat
from pykafka_core.coordinator.group.consumer.draft import Draft
from pykafka_core.coordinator.group.consumer.epochs import next_epoch
from pykafka_core.coordinator.group.consumer.join import admitted, opened
from pykafka_core.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    ConsumerMember,
)
from pykafka_core.coordinator.group.consumer.reconcile import Target, reconciled
from pykafka_core.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
)
from pykafka_core.coordinator.group.consumer.regexes import check_regex, resolve_regexes
from pykafka_core.coordinator.group.consumer.session import (
    forget_deadlines,
    touch,
    watch_revocation,
)
from pykafka_core.coordinator.group.consumer.target import target_records
from pykafka_core.coordinator.group.consumer.topics import (
    TopicsView,
    found_topics,
    metadata_hash,
)
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.protocol.messages import ConsumerGroupHeartbeatResponse

T = TypeVar("T")

_Answer = ConsumerGroupHeartbeatResponse


def consumer_heartbeat(
    beat: Heartbeat, view: TopicsView, state: GroupState, waiter: Waiter, turn: Turn
) -> None:
    """Answered with a `ConsumerGroupHeartbeatResponse`; it has the assignment if that is news to the member.

    Raises:
        GroupIdNotFoundError: There is no such group, or it is a classic one with members.
        GroupMaxSizeReachedError: It has members enough.
        CoordinatorNotAvailableError: All groups together hold as much as they may.
        UnknownMemberIdError: There is no such member.
        UnreleasedInstanceIdError: Another member has the instance id, and has not left.
        FencedInstanceIdError: The same, of a member that has joined already.
        FencedMemberEpochError: It is in another epoch: it has to give up its partitions and to join again.
        InvalidRegularExpressionError: The group has too many of them.
        UnknownServerError: It needs another epoch, and the group is in the last one.
        RecordListTooLargeError: What changes does not fit into one batch.
    """
    draft = opened(beat.group_id, beat.member_epoch, state)
    check_regex(beat.topic_regex, beat.member_id, draft.group)
    member_id = beat.member_id or (state.new_uuid() if beat.member_epoch == JOIN_EPOCH else "")
    before, replaced = admitted(beat, member_id, draft, state)
    is_new_epoch = _update_member(beat, before, draft, state)
    is_new_epoch |= resolve_regexes(draft, view, turn.now_ms)
    _refresh_epoch(view, draft, is_new_epoch)
    if draft.group.epoch > draft.group.assignment_epoch:
        draft.add(target_records(draft.group, view, state.settings.consumer.assignors[0]))
    after = _reconcile(beat, member_id, draft, state, turn)
    if replaced is not None:
        forget_deadlines(state, beat.group_id, replaced)
    draft.group.topics_version = view.version
    touch(state, beat.group_id, member_id, turn.now_ns, beat.session_timeout_ms)
    is_news = beat.is_full or before.assigned != after.assigned
    turn.answer(waiter, _answer(beat, after, is_news=is_news))


def _update_member(
    beat: Heartbeat, before: ConsumerMember, draft: Draft, state: GroupState
) -> bool:
    """Take in what a member says of itself; whether the group needs another assignment."""
    after = _updated(beat, before)
    known = draft.group.members.get(after.member_id)
    if after != known:
        growth = after.size - (0 if known is None else known.size)
        state.member_memory.check_join(growth, is_new=known is None)
        draft.add([member_record(beat.group_id, after)])
    return _subscription(after) != _subscription(before)


def _subscription(member: ConsumerMember) -> tuple[frozenset[str], str | None]:
    """What brings another epoch. Another assignor does not: it is asked when there is something to assign."""
    return member.topic_names, member.topic_regex


def _updated(beat: Heartbeat, member: ConsumerMember) -> ConsumerMember:
    timeout_ms = beat.rebalance_timeout_ms
    return member._replace(
        instance_id=_said(beat.instance_id, member.instance_id),
        rack_id=_said(beat.rack_id, member.rack_id),
        client_id=beat.client_id,
        client_host=beat.client_host,
        topic_names=_said(beat.topic_names, member.topic_names),
        topic_regex=_said(beat.topic_regex, member.topic_regex) or None,
        rebalance_timeout_ms=_said(
            None if timeout_ms == NO_TIMEOUT else timeout_ms, member.rebalance_timeout_ms
        ),
        server_assignor=_said(beat.server_assignor, member.server_assignor),
    )


def _said(value: T | None, before: T) -> T:
    return before if value is None else value


def _refresh_epoch(view: TopicsView, draft: Draft, is_new_epoch: bool) -> None:
    """Come to a new epoch if the subscription has changed, or the topics that the group is subscribed to."""
    group = draft.group
    is_new_epoch |= group.epoch == 0
    if not is_new_epoch and group.topics_version is view.version:
        return
    found = metadata_hash(found_topics(view, set(group.subscribed_names())).values())
    if is_new_epoch or found != group.metadata_hash:
        draft.add([epoch_record(group.group_id, next_epoch(group), found)])


def _reconcile(
    beat: Heartbeat, member_id: str, draft: Draft, state: GroupState, turn: Turn
) -> ConsumerMember:
    """Let the member take a step, and commit all that was drafted."""
    group = draft.group
    before = group.members[member_id]
    target = Target(group.assignment_epoch, group.target(member_id))
    after = reconciled(before, target, beat.owned, group.is_free)
    if after is before:
        draft.commit(state, turn)
    else:
        draft.commit(state, turn, [current_record(beat.group_id, after)])
        watch_revocation(state, beat.group_id, after, turn.now_ns)
    return after


def _answer(beat: Heartbeat, member: ConsumerMember, *, is_news: bool) -> _Answer:
    rows = [
        _Answer.TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
        for topic_id, numbers in sorted(member.assigned.items())
    ]
    return _Answer(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=beat.heartbeat_interval_ms,
        assignment=_Answer.Assignment(topic_partitions=rows) if is_news else None,
    )
