"""What a classic member says when it joins and syncs, as far as a consumer group wants to know it."""

from typing import Protocol

from pykafka_core.coordinator.group.classic.member import Protocols


class ClassicJoin(Protocol):
    """A JoinGroup: `classic.join.Join` is one."""

    @property
    def member_id(self) -> str:
        """Empty without one so far."""

    @property
    def group_instance_id(self) -> str | None:
        """A static member's."""

    @property
    def protocol_type(self) -> str:
        """``consumer`` of those who can join here."""

    @property
    def protocols(self) -> Protocols:
        """The one it likes best comes first."""

    @property
    def session_timeout_ms(self) -> int:
        """Of this member."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """Of this member."""

    @property
    def client_id(self) -> str:
        """As the client calls itself."""

    @property
    def client_host(self) -> str:
        """With Java's slash before the address."""

    @property
    def must_come_back(self) -> bool:
        """Whether it has to join again with the id that it is given (KIP-394)."""


class ClassicSync(Protocol):
    """A SyncGroup: `classic.sync.Sync` is one."""

    @property
    def member_id(self) -> str:
        """Of who asks."""

    @property
    def group_instance_id(self) -> str | None:
        """A static member's."""

    @property
    def generation_id(self) -> int:
        """The epoch that the answer to its JoinGroup had."""

    @property
    def protocol_type(self) -> str | None:
        """None where a client does not say it."""

    @property
    def protocol_name(self) -> str | None:
        """None where a client does not say it."""
