"""JoinGroup, SyncGroup and Heartbeat of classic members of a consumer group
(``classicGroupJoinToConsumerGroup``).
"""

from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.group_update import Draft
from pykafka_core.coordinator.group.consumer.join import replaced_static
from pykafka_core.coordinator.group.consumer.member import (
    ClassicSide,
    ConsumerGroupState,
    ConsumerMember,
    MemberState,
)
from pykafka_core.coordinator.group.consumer.member_update import (
    is_assignment_due,
    put_member,
    reconcile,
    renew,
)
from pykafka_core.coordinator.group.consumer.timers.keys import ConsumerDue, DueInConsumerGroup
from pykafka_core.coordinator.group.consumer.timers.session import (
    forget_deadlines,
    touch,
    watch,
)
from pykafka_core.coordinator.group.consumer.topics import TopicsView
from pykafka_core.coordinator.group.migration.classic_member_request import ClassicJoin, ClassicSync
from pykafka_core.coordinator.group.migration.consumer_protocol import (
    MalformedError,
    Subscription,
    by_id,
    encoded_assignment,
    subscription_of,
)
from pykafka_core.coordinator.group.migration.downgrade import is_downgraded
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import (
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownServerError,
)
from pykafka_core.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    SyncGroupResponse,
)
from pykafka_core.types import NS_PER_MS


def join_consumers(
    join: ClassicJoin,
    view: TopicsView,
    group: ConsumerGroup,
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Add or update a classic member; the immediate response is a `JoinGroupResponse`.

    Raises:
        GroupMaxSizeReachedError: The group is full.
        InconsistentGroupProtocolError: The client supports no protocol that all classic members
            support.
        UnknownServerError: The subscription cannot be read; or the group is in the last epoch.
        CoordinatorNotAvailableError: The memory limit of all groups is reached.
        UnknownMemberIdError: A static member sends an unknown member id.
        FencedInstanceIdError: Another member id has the instance id.
        BatchFullError: The records do not fit into one batch.
    """
    member_id = join.member_id or state.new_uuid()
    group.check_size(member_id, join.group_instance_id, state.settings.consumer.max_size)
    names = [name for name, _ in join.protocols]
    if join.protocol_type != CONSUMER_PROTOCOL or not group.supports_classic(names):
        raise InconsistentGroupProtocolError
    if join.must_come_back:
        required = MemberIdRequiredError.code
        result.respond(waiter, JoinGroupResponse(error_code=required, member_id=member_id))
        return
    subscription = _subscription(join)
    draft = Draft(group)
    before, replaced = _admitted(join, member_id, draft)
    after = _updated(before, join, subscription)
    renew(draft, view, state, put_member(draft, before, after, state), result.now_ms)
    owned = by_id(subscription.owned, view)
    joined = reconcile(draft, member_id, owned, state, result)
    if replaced is not None:
        forget_deadlines(state, group.group_id, replaced)
    draft.group.topics_version = view.version
    _await_sync(state, group.group_id, joined, join, result)
    result.respond(waiter, _joined(joined, names[0]))
    if replaced is not None:
        is_settled = draft.group.state is ConsumerGroupState.STABLE
        cause = f"static member {member_id} rejoined with the classic protocol"
        is_downgraded(state, draft.group, draft.group, cause, result, rebalances=not is_settled)


def _subscription(join: ClassicJoin) -> Subscription:
    """Return the subscription of the member's preferred protocol, which is also the one in the
    response.
    """
    try:
        return subscription_of(join.protocols[0][1])
    except MalformedError:
        raise UnknownServerError from None


def _admitted(join: ClassicJoin, member_id: str, draft: Draft) -> tuple[ConsumerMember, str | None]:
    """Return the member before the request, and the id of the static member that it replaces, if
    any.
    """
    group, instance_id = draft.group, join.group_instance_id
    known = group.members.get(member_id) or ConsumerMember(member_id)
    if instance_id is None:
        return known, None
    existing = group.static_member(instance_id)
    if join.member_id:
        return group.member_of(member_id, instance_id), None
    if existing is None:
        return known, None
    return replaced_static(existing, member_id, draft), existing.member_id


def _updated(
    member: ConsumerMember, join: ClassicJoin, subscription: Subscription
) -> ConsumerMember:
    return member._replace(
        instance_id=join.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=join.client_id,
        client_host=join.client_host,
        topic_names=subscription.topic_names,
        topic_regex=None,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        classic=ClassicSide(join.session_timeout_ms, join.protocols),
    )


def _await_sync(
    state: GroupState,
    group_id: str,
    member: ConsumerMember,
    join: ClassicJoin,
    result: CoordinatorResult,
) -> None:
    touch(state, group_id, member.member_id, result.now_ns, join.session_timeout_ms)
    state.deadlines.cancel(DueInConsumerGroup(ConsumerDue.JOIN, group_id, member.member_id))
    watch(state, ConsumerDue.SYNC, group_id, member, result.now_ns)


def _joined(member: ConsumerMember, protocol: str) -> JoinGroupResponse:
    """Return the response; it names no leader, because the broker assigns."""
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=protocol,
        leader="",
        member_id=member.member_id,
        members=[],
    )


def sync_consumers(
    sync: ClassicSync,
    group: ConsumerGroup,
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Return a classic member's assignment in a `SyncGroupResponse`, or REBALANCE_IN_PROGRESS: join
    again.

    Raises:
        UnknownMemberIdError: There is no such member, or it uses the consumer protocol.
        FencedInstanceIdError: Another member id has the instance id.
        IllegalGenerationError: The member is in another epoch.
        InconsistentGroupProtocolError: Its JoinGroup selected another protocol.
    """
    member, side = _classic_member(
        group, sync.member_id, sync.group_instance_id, sync.generation_id
    )
    if sync.protocol_type not in (None, CONSUMER_PROTOCOL) or sync.protocol_name not in (
        None,
        side.protocol_name,
    ):
        raise InconsistentGroupProtocolError
    # A member that must revoke partitions has already joined again: it first needs the assignment
    # without them.
    gives_up = member.state is MemberState.UNREVOKED_PARTITIONS
    if not gives_up and _is_behind(group, member, state, result):
        _await_join(state, group, member, result)
        result.respond(waiter, RebalanceInProgressError.code)
        return
    key = DueInConsumerGroup(ConsumerDue.SYNC, group.group_id, member.member_id)
    state.deadlines.cancel(key)
    touch(state, group.group_id, member.member_id, result.now_ns, side.session_timeout_ms)
    assigned = encoded_assignment(
        member.assigned, member.topic_names, state.topic_id, side.metadata
    )
    result.respond(
        waiter,
        SyncGroupResponse(
            protocol_type=sync.protocol_type,
            protocol_name=sync.protocol_name,
            assignment=assigned,
        ),
    )


def beat_consumers(
    request: HeartbeatRequest,
    group: ConsumerGroup,
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Extend a classic member's session.

    The response is a `HeartbeatResponse`, or REBALANCE_IN_PROGRESS: join again.

    Raises:
        UnknownMemberIdError: There is no such member, or it uses the consumer protocol.
        FencedInstanceIdError: Another member id has the instance id.
        IllegalGenerationError: The member is in another epoch.
    """
    member, side = _classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    touch(state, group.group_id, member.member_id, result.now_ns, side.session_timeout_ms)
    if _has_a_step_to_take(group, member, state, result):
        _await_join(state, group, member, result)
        result.respond(waiter, RebalanceInProgressError.code)
    else:
        result.respond(waiter, HeartbeatResponse())


def _has_a_step_to_take(
    group: ConsumerGroup, member: ConsumerMember, state: GroupState, result: CoordinatorResult
) -> bool:
    """Return whether the member's next join brings a newer epoch, completes a revocation, or brings
    free partitions.
    """
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not group.waits_for_others(member):
            return True
    return _is_behind(group, member, state, result)


def _is_behind(
    group: ConsumerGroup, member: ConsumerMember, state: GroupState, result: CoordinatorResult
) -> bool:
    """Return whether the member's next join brings a newer target assignment.

    Kafka since 4.3 compares with the epoch of the last assignment only, so that a member does not
    join repeatedly within the assignment interval. Here a member also joins once the next
    assignment is due. Otherwise a group of classic members only would never be assigned again where
    the policy forbids a downgrade.
    """
    return member.epoch < group.assignment_epoch or is_assignment_due(group, state, result.now_ms)


def _await_join(
    state: GroupState, group: ConsumerGroup, member: ConsumerMember, result: CoordinatorResult
) -> None:
    """Start the member's rebalance timeout when it is first asked to rejoin."""
    key = DueInConsumerGroup(ConsumerDue.JOIN, group.group_id, member.member_id)
    if state.deadlines.get(key) is None:
        state.deadlines.set(key, result.now_ns + max(member.rebalance_timeout_ms, 0) * NS_PER_MS)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicSide]:
    member = group.member_of(member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberIdError
    if generation_id != member.epoch:
        raise IllegalGenerationError
    return member, member.classic
