"""Heartbeat in a classic group."""

from pykafka_core.coordinator.group.classic.session import touch_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.migration.requests import beat_consumers
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import RebalanceInProgressError, UnknownMemberIdError
from pykafka_core.protocol.messages import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    request: HeartbeatRequest, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Extend a member's session.

    The response is a `HeartbeatResponse`, or REBALANCE_IN_PROGRESS: join again.

    Raises:
        UnknownMemberIdError: The group or the member does not exist.
        FencedInstanceIdError: Another member id has the instance id.
        IllegalGenerationError: The member is in another generation.
    """
    consumers = state.consumer_groups.get(request.group_id)
    if consumers is not None:
        beat_consumers(request, consumers, state, waiter, result)
        return
    group = state.groups.get(request.group_id)
    if group is None:
        raise UnknownMemberIdError
    member_id = request.member_id
    group.check_generation(member_id, request.group_instance_id, request.generation_id)
    touch_member(state, group.members[member_id], result.now_ns)
    rebalances = group.state is ClassicGroupState.PREPARING_REBALANCE
    result.respond(waiter, RebalanceInProgressError.code if rebalances else HeartbeatResponse())
