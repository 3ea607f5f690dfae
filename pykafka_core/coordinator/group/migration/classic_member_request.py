"""The fields of JoinGroup and SyncGroup that a consumer group uses."""

from typing import Protocol

from pykafka_core.coordinator.group.classic.member import Protocols


class ClassicJoin(Protocol):
    """A JoinGroup request; `classic.join.Join` implements it."""

    @property
    def member_id(self) -> str:
        """Empty if the client has none yet."""

    @property
    def group_instance_id(self) -> str | None:
        """Set for static members."""

    @property
    def protocol_type(self) -> str:
        """Must be ``consumer`` to join a consumer group."""

    @property
    def protocols(self) -> Protocols:
        """The preferred protocol is first."""

    @property
    def session_timeout_ms(self) -> int:
        """Session timeout of the member."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """Rebalance timeout of the member."""

    @property
    def client_id(self) -> str:
        """Client id from the request header."""

    @property
    def client_host(self) -> str:
        """Client address, with Java's leading slash."""

    @property
    def must_come_back(self) -> bool:
        """Return whether the client must join again with the member id that it receives
        (KIP-394).
        """


class ClassicSync(Protocol):
    """A SyncGroup request; `classic.sync.Sync` implements it."""

    @property
    def member_id(self) -> str:
        """Id of the member that sends the request."""

    @property
    def group_instance_id(self) -> str | None:
        """Set for static members."""

    @property
    def generation_id(self) -> int:
        """The epoch from the response to its JoinGroup."""

    @property
    def protocol_type(self) -> str | None:
        """None if the client does not send it."""

    @property
    def protocol_name(self) -> str | None:
        """None if the client does not send it."""
