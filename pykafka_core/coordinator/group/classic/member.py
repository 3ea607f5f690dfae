"""A member of a classic group."""

from collections.abc import Set
from sys import getsizeof

from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.group.member_memory import MemberMemory, Share
from pykafka_core.coordinator.shard import Waiter

Protocols = tuple[tuple[str, bytes], ...]
"""Names and opaque metadata, in the member's order of preference."""

REASON_LENGTH_MAX = 255
"""Maximum length of a reason, as in clients (KIP-800)."""
_OVERHEAD = 1024
"""Upper bound of the bytes of a member without protocols in Python."""
_PROTOCOL_OVERHEAD = 160
"""Upper bound of the bytes of a protocol without its name and metadata."""


def bytes_of(client_id: str, group_instance_id: str | None, protocols: Protocols) -> int:
    """Return the memory of a member without an assignment; its member id contains one of the
    names.
    """
    # A character uses up to four bytes, so the length of a text is not its size.
    names = 2 * (getsizeof(client_id) + getsizeof(group_instance_id or ""))
    said = sum(_PROTOCOL_OVERHEAD + getsizeof(name) + len(metadata) for name, metadata in protocols)
    return _OVERHEAD + names + said


class Member:
    """One member. Its size is counted in ``memory`` for the lifetime of the object.

    Attributes:
        member_id: Created by the coordinator, so it is unique.
        group_instance_id: Set for static members.
        join_waiter: The pending JoinGroup.
        sync_waiter: The pending SyncGroup.
        is_new: It has joined, but is in no generation yet. It may not know its member id, so it
            sends no heartbeats, and its pending JoinGroup is limited in time.
        reason: The client's reason for the last JoinGroup.
        session_key: Key of the session's deadline.
    """

    __slots__ = (
        "_assignment",
        "_protocols",
        "_share",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_waiter",
        "member_id",
        "reason",
        "rebalance_timeout_ms",
        "session_key",
        "session_timeout_ms",
        "sync_waiter",
    )

    def __init__(
        self,
        group_id: str,
        member_id: str,
        group_instance_id: str | None = None,
        *,
        client_id: str = "",
        client_host: str = "",
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        memory: MemberMemory,
        assignment: bytes = b"",
    ) -> None:
        self._share = Share(memory)
        self._protocols: Protocols = ()
        self._assignment = b""
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_waiter: Waiter | None = None
        self.sync_waiter: Waiter | None = None
        self.is_new = False
        self.reason = ""
        self.session_key = DueInGroup(Due.SESSION, group_id, member_id)

    @property
    def held_bytes(self) -> int:
        """Bytes counted for this member."""
        return self._share.size

    @property
    def protocols(self) -> Protocols:
        """The supported protocols; at least one after it joined."""
        return self._protocols

    @protocols.setter
    def protocols(self, protocols: Protocols) -> None:
        own = bytes_of(self.client_id, self.group_instance_id, protocols)
        self._share.grow(own + len(self._assignment) - self._share.size)
        self._protocols = protocols

    @property
    def assignment(self) -> bytes:
        """The leader's assignment for this generation; empty before."""
        return self._assignment

    @assignment.setter
    def assignment(self, assignment: bytes) -> None:
        # Set for all members in one turn: avoid calls.
        if growth := len(assignment) - len(self._assignment):
            self._share.grow(growth)
        self._assignment = assignment

    @property
    def is_heard_of(self) -> bool:
        """Return whether heartbeats are not expected: a request is pending, and the member knows
        its id.
        """
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the metadata of a protocol; empty if the member does not support it."""
        for name, metadata in self._protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: Set[str]) -> str:
        """Return the preferred candidate. All members support each candidate."""
        for name, _ in self._protocols:
            if name in candidates:
                return name
        raise AssertionError("all members support each candidate")
