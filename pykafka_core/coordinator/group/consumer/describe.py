"""ConsumerGroupDescribe and ListGroups: the consumer groups as clients see them."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.budget import Budget, encoded_length_max
from pykafka_core.coordinator.group.consumer.assignment.target import assignor_name
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.member import (
    Assignment,
    ConsumerMember,
    assignment_of,
)
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import GroupIdNotFoundError

_GROUP_BYTES = 320
"""Upper bound of a group as an object and in a response, without its id and members. It is not part
of `Read.size`, which is limited."""
_MEMBER_BYTES = 200
"""Size of a member in a response with names of usual lengths, without its topics and
partitions."""
_LENGTHS_BYTES = 64
"""Upper bound of the numbers and lengths of a member in a response."""
_TOPIC_BYTES = 512
"""Upper bound of a topic in an assignment, encoded and as an object, without its partitions: its
id, a name of 249 characters, and the row."""
_PARTITION_BYTES = 16
"""Weight of a partition, which has 4 bytes in the response: each is converted separately."""
_HELD_BYTES = 128
"""Upper bound of a member in `Described`."""
_HELD_PARTITION_BYTES = 256
"""Upper bound of a partition in `DescribedMember.held`, if it is not the member's own mapping."""


class DescribedMember(NamedTuple):
    """A member and its partitions.

    Attributes:
        held: Its assigned partitions, and those that it has not revoked yet, as in Kafka since
            4.3.
        target: Its partitions in the newest target assignment.
    """

    member: ConsumerMember
    held: Mapping[bytes, Collection[int]]
    target: Assignment


class Described(NamedTuple):
    """The state of a group at one moment."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedMember, ...]


def describe_consumer_group(
    group_id: str, budget: Budget, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Respond with a `Read` of a `Described`. The caller encodes it in slices, during which the
    group may change.

    Args:
        group_id: Any text; may be empty.
        budget: Memory for the description.
        state: State of the shard.
        waiter: The request.
        result: The result of this operation.

    Raises:
        GroupIdNotFoundError: There is no such group, or it is a classic one.
    """
    group = state.consumer_groups.get(group_id)
    if group is None:
        raise GroupIdNotFoundError
    size, held_bytes = _measured(group)
    make = partial(_described, group, state.settings.consumer.assignors[0])
    result.respond(waiter, budget.read(size, held_bytes, make))


def _measured(group: ConsumerGroup) -> tuple[int, int]:
    """Return the size of the response about a group, and of its `Described`."""
    size, held_bytes = 0, _GROUP_BYTES + encoded_length_max(group.group_id)
    for member_id, member in group.members.items():
        size += _member_bytes(member) + sum(map(encoded_length_max, member.topic_names))
        for assignment in (member.assigned, member.revoking, group.target(member_id)):
            size += _TOPIC_BYTES * len(assignment) + _PARTITION_BYTES * _count(assignment)
        held = _count(member.assigned) + _count(member.revoking) if member.revoking else 0
        held_bytes += _HELD_BYTES + _HELD_PARTITION_BYTES * held
    return size, size + held_bytes


def _count(assignment: Mapping[bytes, Collection[int]]) -> int:
    return sum(map(len, assignment.values()))


def _member_bytes(member: ConsumerMember) -> int:
    texts = (
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topic_regex,
    )
    return max(_MEMBER_BYTES, _LENGTHS_BYTES + sum(map(encoded_length_max, texts)))


def _described(group: ConsumerGroup, default_assignor: str) -> Described:
    return Described(
        group.group_id,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        assignor_name(group, default_assignor),
        tuple(
            DescribedMember(member, _held(member), group.target(member_id))
            for member_id, member in group.members.items()
        ),
    )


def _held(member: ConsumerMember) -> Mapping[bytes, Collection[int]]:
    if not member.revoking:
        return member.assigned
    return assignment_of((topic_id, [number]) for topic_id, number in member.held())
