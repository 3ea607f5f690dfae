"""DescribeGroups and ListGroups: what clients see of classic groups."""

from collections.abc import Set
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.errors import GroupIdNotFoundError
from pykafka_core.protocol.messages import DescribeGroupsResponse

CLASSIC = "classic"
"""The type of all groups here, as clients read and write it."""


class Listed(NamedTuple):
    """One group in a list."""

    group_id: str
    protocol_type: str
    state: str


def list_groups(states: Set[str], state: GroupState, waiter: Waiter, turn: Turn) -> None:
    """Answer with a tuple of `Listed`.

    Args:
        states: Lower-case names of states; without any, groups of all are listed.
    """
    turn.answer(
        waiter,
        tuple(
            Listed(group.group_id, group.protocol_type or "", group.state.value)
            for group in state.groups.values()
            if not states or group.state.lower() in states
        ),
    )


def describe_group(group_id: str, state: GroupState, waiter: Waiter, turn: Turn) -> None:
    """Answer with a `DescribeGroupsResponse.DescribedGroup`.

    Raises:
        GroupIdNotFoundError: There is no such group.
    """
    group = state.groups.get(group_id)
    if group is None:
        raise GroupIdNotFoundError
    is_stable = group.state is ClassicGroupState.STABLE
    described = DescribeGroupsResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[_described(group, member, is_stable) for member in group.members.values()],
    )
    turn.answer(waiter, described)


def _described(
    group: ClassicGroup, member: Member, is_stable: bool
) -> DescribeGroupsResponse.DescribedGroupMember:
    return DescribeGroupsResponse.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
        member_assignment=member.assignment,
    )
