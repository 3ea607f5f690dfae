"""Sessions of brokers at the active controller: their last contact, and the effect of heartbeats.

``BrokerHeartbeatManager`` and ``BrokerHeartbeatTracker`` in Kafka; KIP-631, KIP-841.

Theory of operation. Whether a broker is fenced or in controlled shutdown is committed, and part of
its registration. The state here is not committed: the time of a broker's last contact, its offset
in the metadata log, and the offset that other brokers must reach before it may stop. So a new
controller starts without it, and treats its own start as the last contact of all unfenced brokers.
A session belongs to a broker epoch; a session of another epoch is ignored.

Transitions by heartbeat:

- FENCED: to SHUTDOWN_NOW if it requests shutdown; to UNFENCED if it requests that and has applied
  its own registration.
- UNFENCED: to FENCED on request. If it requests shutdown, to CONTROLLED_SHUTDOWN while it leads
  partitions, else to SHUTDOWN_NOW. Also to FENCED when its session expires.
- CONTROLLED_SHUTDOWN: it is in no ISR. To SHUTDOWN_NOW when it leads no partition and all active
  brokers have applied that.
- SHUTDOWN_NOW: only the response to a heartbeat; the broker is fenced.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from pykafka_core.metadata.image.image import Broker


class BrokerState(Enum):
    """State of a broker; the module lists the transitions."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        """Value of the field in the heartbeat response."""
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


class Wish(NamedTuple):
    """The requests in a heartbeat, and their conditions.

    Attributes:
        is_caught_up: The broker has applied its own registration.
        leads_any: The broker leads a partition.
        others_know: All active brokers have applied that it leads no partition.
    """

    fence: bool
    shut_down: bool
    is_caught_up: bool
    leads_any: bool = False
    others_know: bool = False


def state_of(broker: Broker) -> BrokerState:
    """Return the committed state."""
    if broker.fenced:
        return BrokerState.FENCED
    if broker.in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def next_state(state: BrokerState, wish: Wish) -> BrokerState:
    """Return the state after a heartbeat."""
    return _NEXT[state](wish)


def _of_fenced(wish: Wish) -> BrokerState:
    if wish.shut_down:
        return BrokerState.SHUTDOWN_NOW
    is_ready = wish.is_caught_up and not wish.fence
    return BrokerState.UNFENCED if is_ready else BrokerState.FENCED


def _of_unfenced(wish: Wish) -> BrokerState:
    if wish.fence:
        return BrokerState.SHUTDOWN_NOW if wish.shut_down else BrokerState.FENCED
    if not wish.shut_down:
        return BrokerState.UNFENCED
    return BrokerState.CONTROLLED_SHUTDOWN if wish.leads_any else BrokerState.SHUTDOWN_NOW


def _of_shutting_down(wish: Wish) -> BrokerState:
    may_stop = wish.others_know and not wish.leads_any
    return BrokerState.SHUTDOWN_NOW if may_stop else BrokerState.CONTROLLED_SHUTDOWN


_NEXT = {
    BrokerState.FENCED: _of_fenced,
    BrokerState.UNFENCED: _of_unfenced,
    BrokerState.CONTROLLED_SHUTDOWN: _of_shutting_down,
}


class BrokerSession(NamedTuple):
    """The session of one process of a broker.

    Attributes:
        epoch: The broker epoch of its registration.
        contact_ns: Time of the last contact, monotonic.
        metadata_offset: The last offset it has applied, inclusive; -1 if unknown.
        shutdown_offset: The offset that other brokers must apply before it stops, inclusive; None
            unless it is in controlled shutdown.
        doubted_ns: Time when its connection last ended, monotonic; -1 if none did.
    """

    epoch: int
    contact_ns: int
    metadata_offset: int = -1
    shutdown_offset: int | None = None
    doubted_ns: int = -1

    @property
    def is_in_doubt(self) -> bool:
        """Whether its connection ended after the last contact: it may have been replaced."""
        return self.doubted_ns > self.contact_ns


class BrokerSessions(NamedTuple):
    """All sessions, as a value: each method returns the next one.

    Attributes:
        timeout_ns: ``broker.session.timeout.ms``.
        began_ns: When the controller became active; all times are monotonic.
        by_id: Sessions by broker id; those of unregistered brokers are ignored.
    """

    timeout_ns: int
    began_ns: int
    by_id: Mapping[int, BrokerSession] = {}

    def touched(
        self, node_id: int, epoch: int, now_ns: int, metadata_offset: int
    ) -> "BrokerSessions":
        """Handle a heartbeat that arrived at ``now_ns``."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        contact_ns = max(old.contact_ns, now_ns)
        heard = old._replace(contact_ns=contact_ns, metadata_offset=metadata_offset)
        return self._with(node_id, heard)

    def doubted(self, node_id: int, epoch: int, now_ns: int) -> "BrokerSessions":
        """Handle a lost connection: until the next heartbeat, another process may register."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        return self._with(node_id, old._replace(doubted_ns=now_ns))

    def registered(self, node_id: int, epoch: int, now_ns: int) -> "BrokerSessions":
        """Handle a committed registration; the session of an earlier process is dropped."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        return self._with(node_id, old._replace(contact_ns=max(old.contact_ns, now_ns)))

    def shutting_down(self, node_id: int, epoch: int, offset: int) -> "BrokerSessions":
        """Set the offset where the broker lost its last partition; other brokers must apply it."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        return self._with(node_id, old._replace(shutdown_offset=offset))

    def ended(self, node_id: int, epoch: int) -> "BrokerSessions":
        """Drop the session of a fenced broker that stops, so that another process may register."""
        if self._of_epoch(node_id, epoch) is None:
            return self
        rest = {node: found for node, found in self.by_id.items() if node != node_id}
        return self._replace(by_id=rest)

    def is_valid(self, broker: Broker, now_ns: int) -> bool:
        """Return whether the last contact with the registered process is within the timeout."""
        contact_ns = self._contact_ns(broker)
        return contact_ns is not None and now_ns - contact_ns <= self.timeout_ns

    def may_be_succeeded(self, broker: Broker, now_ns: int) -> bool:
        """Return whether another process may register, because this one has or may have ended."""
        found = self._of_epoch(broker.node_id, broker.epoch)
        is_in_doubt = found is not None and found.is_in_doubt
        return is_in_doubt or not self.is_valid(broker, now_ns)

    def is_hearsay(self, broker: Broker, now_ns: int, heartbeat_ns: int) -> bool:
        """Return whether this controller never had contact with a process registered elsewhere.

        The process has had time for two heartbeats, which are sent every ``heartbeat_ns``.
        """
        is_unheard = self._of_epoch(broker.node_id, broker.epoch) is None
        return is_unheard and now_ns >= self.began_ns + 2 * heartbeat_ns

    def deadline_ns(self, brokers: Iterable[Broker]) -> int | None:
        """Return the time after which the next unfenced broker is stale; None if all are fenced."""
        contacts = (self._contact_ns(broker) for broker in brokers if not broker.fenced)
        ends = [contact + self.timeout_ns for contact in contacts if contact is not None]
        return min(ends, default=None)

    def stale(self, brokers: Iterable[Broker], now_ns: int) -> Broker | None:
        """Return the unfenced broker with the oldest contact, if its session has expired.

        Args:
            brokers: All registered brokers.
            now_ns: At most the arrival time of any pending request, so that waiting heartbeats
                count.
        """
        found = None
        for broker in brokers:
            contact_ns = self._contact_ns(broker)
            if broker.fenced or contact_ns is None or now_ns - contact_ns <= self.timeout_ns:
                continue
            if found is None or contact_ns < found[0]:
                found = contact_ns, broker
        return found[1] if found else None

    def shutdown_offset(self, broker: Broker) -> int | None:
        """Return the broker's `BrokerSession.shutdown_offset`."""
        found = self._of_epoch(broker.node_id, broker.epoch)
        return found.shutdown_offset if found else None

    def has_applied(self, brokers: Iterable[Broker], offset: int) -> bool:
        """Return whether every active broker has applied the metadata log up to ``offset``."""
        found = (self._of_epoch(b.node_id, b.epoch) for b in brokers if b.is_active)
        return all(session is not None and session.metadata_offset >= offset for session in found)

    def _of_epoch(self, node_id: int, epoch: int) -> BrokerSession | None:
        found = self.by_id.get(node_id)
        return found if found is not None and found.epoch == epoch else None

    def _contact_ns(self, broker: Broker) -> int | None:
        found = self._of_epoch(broker.node_id, broker.epoch)
        if found is not None:
            return found.contact_ns
        return None if broker.fenced else self.began_ns

    def _with(self, node_id: int, session: BrokerSession) -> "BrokerSessions":
        return self._replace(by_id={**self.by_id, node_id: session})
