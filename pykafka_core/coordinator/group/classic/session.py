"""Sessions of members: one lazy deadline each, which everything that a member sends moves later."""

from sys import getsizeof

from pykafka_core.coordinator.deadlines import NS_PER_MS
from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.member_memory import Share
from pykafka_core.coordinator.group.state import GroupState

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""How long a JoinGroup of a new member may wait (``CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``): if its client is gone,
nothing else removes it, and one that is still there tries again."""
_PENDING_OVERHEAD = 1024
"""What Python takes for a member id that is waited for, beside its text, and more."""


def touch(state: GroupState, group: ClassicGroup, member_id: str, now_ns: int) -> None:
    """A member was heard of: its session begins again. Nothing happens if it is none."""
    member = group.members.get(member_id)
    if member is not None:
        touch_member(state, member, now_ns)


def touch_member(state: GroupState, member: Member, now_ns: int) -> None:
    """Its session begins again."""
    state.deadlines.set(member.session_key, now_ns + member.session_timeout_ms * NS_PER_MS)


def touch_new_member(state: GroupState, member: Member, now_ns: int) -> None:
    """Its first session begins when it is answered; until then it may wait this long."""
    state.deadlines.set(member.session_key, now_ns + NEW_MEMBER_TIMEOUT_MS * NS_PER_MS)


def await_pending_member(
    state: GroupState, group: ClassicGroup, member_id: str, due_ns: int
) -> None:
    """Who was given a member id has to join with it until then."""
    share = group.pending_members[member_id] = Share(state.member_memory)
    share.grow(_PENDING_OVERHEAD + getsizeof(member_id))
    state.deadlines.set(DueInGroup(Due.SESSION, group.group_id, member_id), due_ns)


def drop_pending_member(state: GroupState, group: ClassicGroup, member_id: str) -> None:
    """It left before it joined."""
    group.pending_members.pop(member_id, None)
    state.deadlines.cancel(DueInGroup(Due.SESSION, group.group_id, member_id))
