"""ConsumerGroupDescribe and ListGroups: the consumer groups as clients see them."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

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
    group_id: str, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Respond with a `Described`. The caller encodes it in slices, during which the group may
    change.

    Raises:
        GroupIdNotFoundError: There is no such group, or it is a classic one.
    """
    group = state.consumer_groups.get(group_id)
    if group is None:
        raise GroupIdNotFoundError
    result.respond(waiter, _described(group, state.settings.consumer.assignors[0]))


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
