"""DescribeGroups for classic groups; ListGroups for groups of both kinds."""

from collections import defaultdict
from collections.abc import Iterator, Set
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.budget import Budget, encoded_length_max
from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import GroupIdNotFoundError
from pykafka_core.protocol.messages import DescribeGroupsResponse

CLASSIC, CONSUMER = "classic", "consumer"
"""Types of groups in requests and responses."""


_GROUP_BYTES = 320
"""Upper bound of a group as an object and in a response, without its names and members. It is not
part of `Read.size`, which is limited."""
_MEMBER_BYTES = 200
"""Size of a member in a response with names of usual lengths, without its metadata and
assignment."""
_LENGTHS_BYTES = 32
"""Upper bound of the lengths of a member's fields in a response."""
_HELD_BYTES = 256
"""Upper bound of a member as an object, without its fields."""


class Kind(NamedTuple):
    """The part of a row of ListGroups that many groups share."""

    protocol_type: str
    state: str
    group_type: str


def list_groups(
    states: Set[str], types: Set[str], state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Respond with lists of group ids by `Kind`: one reference for each group.

    Args:
        states: Lower-case names of states; empty for all states.
        types: Lower-case names of group types; empty for all types.
        state: State of the shard.
        waiter: The request.
        result: The result of this operation.
    """
    found: defaultdict[Kind, list[str]] = defaultdict(list)
    for kind, group_id in _listed(state):
        found[kind].append(group_id)
    listed = {
        kind: group_ids
        for kind, group_ids in found.items()
        if (not states or kind.state.lower() in states) and (not types or kind.group_type in types)
    }
    result.respond(waiter, listed)


def _listed(state: GroupState) -> Iterator[tuple[Kind, str]]:
    for classic in state.groups.values():
        kind = Kind(classic.protocol_type or "", classic.state.value, CLASSIC)
        yield kind, classic.group_id
    for consumers in state.consumer_groups.values():
        kind = Kind(CONSUMER_PROTOCOL, consumers.state.value, CONSUMER)
        yield kind, consumers.group_id


def describe_group(
    group_id: str, budget: Budget, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Respond with a `Read` of a `DescribeGroupsResponse.DescribedGroup`.

    The members are converted in this turn: metadata and assignments are not copied, and the others
    may change later.

    Args:
        group_id: Any text; may be empty.
        budget: Memory for the description.
        state: State of the shard.
        waiter: The request.
        result: The result of this operation.

    Raises:
        GroupIdNotFoundError: There is no such group.
    """
    group = state.groups.get(group_id)
    if group is None:
        raise GroupIdNotFoundError
    size = _size(group)
    texts = (group_id, group.protocol_type, group.protocol_name)
    held_bytes = size + _GROUP_BYTES + sum(map(encoded_length_max, texts))
    held_bytes += _HELD_BYTES * len(group.members)
    result.respond(waiter, budget.read(size, held_bytes, partial(_group, group)))


def _group(group: ClassicGroup) -> DescribeGroupsResponse.DescribedGroup:
    is_stable = group.state is ClassicGroupState.STABLE
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[_described(group, member, is_stable) for member in group.members.values()],
    )


def _size(group: ClassicGroup) -> int:
    is_stable = group.state is ClassicGroupState.STABLE
    size = 0
    for member in group.members.values():
        metadata = member.metadata(group.protocol_name) if is_stable else b""
        size += _member_bytes(member) + len(metadata) + len(member.assignment)
    return size


def _member_bytes(member: Member) -> int:
    texts = (member.member_id, member.group_instance_id, member.client_id, member.client_host)
    return max(_MEMBER_BYTES, _LENGTHS_BYTES + sum(map(encoded_length_max, texts)))


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
