"""The states of a classic group, and which may follow which."""

from collections.abc import Mapping
from enum import StrEnum


class ClassicGroupState(StrEnum):
    """Each with how requests are answered in it, and what leads out of it. Values are as clients see them.

    Wherever a member is named, one that is not in the group is told UNKNOWN_MEMBER_ID, one whose instance id belongs
    to another member id FENCED_INSTANCE_ID, and one of another generation ILLEGAL_GENERATION.
    """

    EMPTY = "Empty"
    """There are no members; offsets may remain.

    JoinGroup: a new member begins the initial rebalance. SyncGroup, Heartbeat, LeaveGroup: nobody is a member.
    OffsetCommit: accepted without a generation. Out: a member joins; the group is deleted or expires.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are waited for.

    JoinGroup: waits until all members have joined or the rebalance timeout has passed. SyncGroup, Heartbeat:
    REBALANCE_IN_PROGRESS. OffsetCommit: accepted from the last generation. Out: all joined, or nobody is left.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The leader's assignment is waited for.

    JoinGroup: the new generation for a member that did not change, else a rebalance. SyncGroup: waits for the leader's.
    Heartbeat: accepted. OffsetCommit: REBALANCE_IN_PROGRESS. Out: the leader syncs; a member comes, changes or goes.
    """

    STABLE = "Stable"
    """Everybody may have an assignment.

    JoinGroup: the generation for a follower that did not change, else a rebalance. SyncGroup: the assignment.
    Heartbeat, OffsetCommit: accepted. Out: a member comes, changes or goes, or the leader joins again.
    """

    DEAD = "Dead"
    """The group was removed; nothing asks it any more. Clients read this of a group that does not exist."""


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

FOLLOWING: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = {
    _EMPTY: frozenset({_PREPARING, _DEAD}),
    _PREPARING: frozenset({_COMPLETING, _EMPTY, _DEAD}),
    _COMPLETING: frozenset({_STABLE, _PREPARING, _DEAD}),
    _STABLE: frozenset({_PREPARING, _DEAD}),
    _DEAD: frozenset(),
}
"""What may come next. ``ClassicGroupState`` of Kafka has the same table by previous states."""
