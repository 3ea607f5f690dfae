"""Sessions of members: one deadline each, which requests of the member extend."""

from sys import getsizeof

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.member_memory import Share
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.types import NS_PER_MS

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""Maximum time that a JoinGroup of a new member waits
(``CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``). Without it, nothing would remove a member whose
client is gone; a live client retries."""
_PENDING_OVERHEAD = 1024
"""Upper bound of the bytes of a pending member without the text of its id."""


def touch(state: GroupState, group: ClassicGroup, member_id: str, now_ns: int) -> None:
    """Restart the session of a member; does nothing for an unknown member."""
    member = group.members.get(member_id)
    if member is not None:
        touch_member(state, member, now_ns)


def touch_member(state: GroupState, member: Member, now_ns: int) -> None:
    """Restart the session of the member."""
    state.deadlines.set(member.session_key, now_ns + member.session_timeout_ms * NS_PER_MS)


def touch_new_member(state: GroupState, member: Member, now_ns: int) -> None:
    """Limit the time until the member's first response; its session starts with that response."""
    state.deadlines.set(member.session_key, now_ns + NEW_MEMBER_TIMEOUT_MS * NS_PER_MS)


def await_pending_member(
    state: GroupState, group: ClassicGroup, member_id: str, due_ns: int
) -> None:
    """Add a pending member: the client must join with this member id before ``due_ns``."""
    share = group.pending_members[member_id] = Share(state.member_memory)
    share.grow(_PENDING_OVERHEAD + getsizeof(member_id))
    state.deadlines.set(DueInGroup(Due.SESSION, group.group_id, member_id), due_ns)


def drop_pending_member(state: GroupState, group: ClassicGroup, member_id: str) -> None:
    """Remove a pending member."""
    group.pending_members.pop(member_id, None)
    state.deadlines.cancel(DueInGroup(Due.SESSION, group.group_id, member_id))
