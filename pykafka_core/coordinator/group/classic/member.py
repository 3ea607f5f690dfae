"""A member of a classic group."""

from collections.abc import Set
from sys import getsizeof

from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.group.member_memory import MemberMemory, Share
from pykafka_core.coordinator.shard import Waiter

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata, which is opaque, in the order of the member's preference."""

REASON_LENGTH_MAX = 255
"""As long as clients make their reasons (KIP-800)."""
_OVERHEAD = 1024
"""What Python takes for a member without protocols, and more."""
_PROTOCOL_OVERHEAD = 160
"""Likewise of a protocol."""


def bytes_of(client_id: str, group_instance_id: str | None, protocols: Protocols) -> int:
    """What a member takes in memory before it has an assignment; its member id begins with one of its names."""
    # A character takes up to four bytes, so texts are not counted by their length.
    names = 2 * (getsizeof(client_id) + getsizeof(group_instance_id or ""))
    said = sum(_PROTOCOL_OVERHEAD + getsizeof(name) + len(metadata) for name, metadata in protocols)
    return _OVERHEAD + names + said


class Member:
    """One member. It is counted in ``memory`` as long as it is an object, by what it holds.

    Attributes:
        member_id: Made here, so it is unique.
        group_instance_id: A static member's.
        join_waiter: Waits for the answer to its JoinGroup.
        sync_waiter: Waits for the answer to its SyncGroup.
        is_new: It has joined, and no generation has had it: it may not know its member id, so it sends no heartbeats,
            and it is given up after a time even though it waits.
        reason: Why it joined last, as it says itself.
        session_key: Of its session's deadline.
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
        """What it is counted with."""
        return self._share.size

    @property
    def protocols(self) -> Protocols:
        """What it supports; at least one after it joined."""
        return self._protocols

    @protocols.setter
    def protocols(self, protocols: Protocols) -> None:
        own = bytes_of(self.client_id, self.group_instance_id, protocols)
        self._share.grow(own + len(self._assignment) - self._share.size)
        self._protocols = protocols

    @property
    def assignment(self) -> bytes:
        """The leader's, of this generation; empty while there is none."""
        return self._assignment

    @assignment.setter
    def assignment(self, assignment: bytes) -> None:
        # Set for each member in one turn: no calls that can be spared.
        if growth := len(assignment) - len(self._assignment):
            self._share.grow(growth)
        self._assignment = assignment

    @property
    def is_heard_of(self) -> bool:
        """It need not send heartbeats: it waits for an answer, and knows its member id."""
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it says for a protocol; nothing for one that it does not support."""
        for name, metadata in self._protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: Set[str]) -> str:
        """The one it likes best. All members support each of them."""
        for name, _ in self._protocols:
            if name in candidates:
                return name
        raise AssertionError("all members support each candidate")
