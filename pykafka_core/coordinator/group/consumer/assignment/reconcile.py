"""One step of a member towards its target assignment, like ``CurrentAssignmentBuilder``.

A member first revokes the partitions that are not in its target, and keeps its epoch until it
confirms this. Then it gets the target's epoch and those of its partitions that are free, and later
the others, when their holders release them. Each partition is stored with the epoch in which the
member got it.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

from pykafka_core.coordinator.group.consumer.member import (
    HOLDS_NOTHING,
    Assignment,
    ConsumerMember,
    Held,
    MemberState,
    held_since,
    overlaps,
)
from pykafka_core.errors import FencedMemberEpochError

P = TypeVar("P", bound=Collection[int])


class Target(NamedTuple):
    """The target assignment of a member, and its epoch."""

    epoch: int
    partitions: Assignment


class _Step(NamedTuple):
    """The partitions of a member that it keeps, must revoke, and gets."""

    kept: Held
    revoked: Held
    gained: Assignment
    """Partitions of the target that no other member holds; a member may get back partitions that it
    has revoked."""
    is_waiting: bool
    """Whether other members hold partitions of the target."""


def reconciled(
    member: ConsumerMember,
    target: Target,
    owned: Assignment | None,
    is_free: Callable[[bytes, int], bool],
) -> ConsumerMember:
    """Return the member after its next step; the same object if there is no step.

    Args:
        member: The current member.
        target: Its target assignment.
        owned: Partitions that the member says it owns; None if the heartbeat has no list.
        is_free: Returns whether no member holds a partition, not even this one.

    Raises:
        FencedMemberEpochError: A later version wrote the member's state, and the member still owns
            partitions.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target.epoch:
                return member
            return _next(member, member.epoch, target, owned, is_free)
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_owns(owned, member.revoking):
                return member
            # If a newer target requires more revocations, the member keeps its epoch, so that its
            # commits do not become stale.
            return _next(member, member.epoch, target, owned, is_free)
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, member.epoch, target, owned, is_free)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise FencedMemberEpochError
            return _next(member, target.epoch, target, owned, is_free)


def _still_owns(owned: Assignment | None, revoked: Held) -> bool:
    return owned is None or overlaps(owned, revoked)


def _next(
    member: ConsumerMember,
    epoch: int,
    target: Target,
    owned: Assignment | None,
    is_free: Callable[[bytes, int], bool],
) -> ConsumerMember:
    step = _step(member, target.partitions, is_free)
    if step.revoked and _still_owns(owned, step.revoked):
        state, assigned, revoking = MemberState.UNREVOKED_PARTITIONS, step.kept, step.revoked
    else:
        waits, stable = MemberState.UNRELEASED_PARTITIONS, MemberState.STABLE
        state, epoch = (waits if step.is_waiting else stable), target.epoch
        gained = held_since(target.epoch, step.gained)
        assigned, revoking = _union(step.kept, gained), HOLDS_NOTHING
    moved = (state, epoch, assigned, revoking)
    if moved == (member.state, member.epoch, member.assigned, member.revoking):
        return member
    return member._replace(
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
    )


def _step(
    member: ConsumerMember, target: Assignment, is_free: Callable[[bytes, int], bool]
) -> _Step:
    kept: dict[bytes, Mapping[int, int]] = {}
    revoked: dict[bytes, Mapping[int, int]] = {}
    gained: dict[bytes, frozenset[int]] = {}
    is_waiting = False
    for topic_id in member.assigned.keys() | target.keys():
        has = member.assigned.get(topic_id, {})
        gave_up = member.revoking.get(topic_id, {})
        wanted = target.get(topic_id, frozenset())
        missing = wanted.difference(has)
        free = frozenset(
            number for number in missing if number in gave_up or is_free(topic_id, number)
        )
        kept[topic_id] = {number: epoch for number, epoch in has.items() if number in wanted}
        revoked[topic_id] = {number: epoch for number, epoch in has.items() if number not in wanted}
        gained[topic_id] = free
        is_waiting |= free != missing
    return _Step(_filled(kept), _filled(revoked), _filled(gained), is_waiting)


def _filled(partitions: Mapping[bytes, P]) -> Mapping[bytes, P]:
    return {topic_id: numbers for topic_id, numbers in partitions.items() if numbers}


def _union(one: Held, other: Held) -> Held:
    return {
        topic_id: {**one.get(topic_id, {}), **other.get(topic_id, {})}
        for topic_id in one.keys() | other.keys()
    }
