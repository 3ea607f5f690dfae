"""A member of a classic group."""

from collections.abc import Set

from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.shard import Waiter

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata, which is opaque, in the order of the member's preference."""

REASON_LENGTH_MAX = 255
"""As long as clients make their reasons (KIP-800)."""


class Member:
    """One member.

    Attributes:
        member_id: Made here, so it is unique.
        group_instance_id: A static member's.
        protocols: What it supports; at least one after it joined.
        assignment: The leader's, of this generation; empty while there is none.
        join_waiter: Waits for the answer to its JoinGroup.
        sync_waiter: Waits for the answer to its SyncGroup.
        is_new: It has joined, and no generation has had it: it may not know its member id, so it sends no heartbeats,
            and it is given up after a time even though it waits.
        reason: Why it joined last, as it says itself.
        session_key: Of its session's deadline.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_waiter",
        "member_id",
        "protocols",
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
        assignment: bytes = b"",
    ) -> None:
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
    def is_heard_of(self) -> bool:
        """It need not send heartbeats: it waits for an answer, and knows its member id."""
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it says for a protocol; nothing for one that it does not support."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Set[str]) -> str:
        """The one it likes best. All members support each of them."""
        return next(name for name, _ in self.protocols if name in candidates)
