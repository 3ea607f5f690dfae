"""The states of a classic group and their transitions."""

from collections.abc import Mapping
from enum import StrEnum


class ClassicGroupState(StrEnum):
    """States, each with the handling of requests and the transitions out of it.

    Values are as in responses.

    In every state, a request that names a member fails with UNKNOWN_MEMBER_ID if it is not in the
    group, with FENCED_INSTANCE_ID if its instance id belongs to another member id, and with
    ILLEGAL_GENERATION if it is in another generation.
    """

    EMPTY = "Empty"
    """There are no members; offsets may remain.

    JoinGroup: a new member starts the initial rebalance. SyncGroup, Heartbeat, LeaveGroup:
    UNKNOWN_MEMBER_ID. OffsetCommit: accepted without a generation. Out: a member joins; the group
    is deleted or expires.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """The group waits for members to join.

    JoinGroup: waits until all members have joined or the rebalance timeout has passed. SyncGroup,
    Heartbeat: REBALANCE_IN_PROGRESS. OffsetCommit: accepted from the last generation. Out: all
    joined, or no members are left.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The group waits for the leader's assignment.

    JoinGroup: the new generation for a member that did not change, else a rebalance. SyncGroup:
    waits for the leader's. Heartbeat: accepted. OffsetCommit: REBALANCE_IN_PROGRESS. Out: the
    leader syncs; a member joins, changes or leaves.
    """

    STABLE = "Stable"
    """The generation has an assignment.

    JoinGroup: the generation for a follower that did not change, else a rebalance. SyncGroup: the
    assignment. Heartbeat, OffsetCommit: accepted. Out: a member joins, changes or leaves, or the
    leader joins again.
    """

    DEAD = "Dead"
    """The group was removed and handles no more requests. Clients see this state for a group that
    does not exist."""


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

FOLLOWING: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = {
    _EMPTY: frozenset({_PREPARING, _DEAD}),
    _PREPARING: frozenset({_COMPLETING, _EMPTY, _DEAD}),
    _COMPLETING: frozenset({_STABLE, _PREPARING, _DEAD}),
    _STABLE: frozenset({_PREPARING, _DEAD}),
    _DEAD: frozenset(),
}
"""Allowed transitions. ``ClassicGroupState`` of Kafka has the same table by previous states."""
