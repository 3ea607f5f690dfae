"""Sessions of brokers at the active controller: who was heard of when, and what a heartbeat makes of its broker.

``BrokerHeartbeatManager`` and ``BrokerHeartbeatTracker`` in Kafka; KIP-631, KIP-841.

Theory of operation. Whether a broker is fenced or shuts down is committed, and read from its registration. What is kept
here is in no record: when a broker was last heard of, how far it has applied the metadata log, and which offset the
others have to reach before it may stop. So a controller that takes over begins with nothing but the time: every broker
that is unfenced counts as heard of then. A session belongs to a broker epoch; one of another process is none.

State of a broker, and what a heartbeat makes of it:

- FENCED: to SHUTDOWN_NOW if it asks for its stop; to UNFENCED if it asks for that and has applied its own registration.
- UNFENCED: to FENCED if it asks; if it asks for its stop, to CONTROLLED_SHUTDOWN while it leads partitions, else to
  SHUTDOWN_NOW. FENCED too when its session ends.
- CONTROLLED_SHUTDOWN: it is in no ISR. To SHUTDOWN_NOW when it leads nothing and every active broker has applied that.
- SHUTDOWN_NOW: what a heartbeat is answered; the broker is fenced.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from pykafka_core.metadata.image.image import Broker


class BrokerState(Enum):
    """See the module."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        """As an answer to a heartbeat says it."""
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


class Wish(NamedTuple):
    """What a heartbeat asks for, and what it depends on.

    Attributes:
        is_caught_up: The broker has applied its own registration.
        leads_any: It leads a partition.
        others_know: Every active broker has applied that it leads none.
    """

    fence: bool
    shut_down: bool
    is_caught_up: bool
    leads_any: bool = False
    others_know: bool = False


def state_of(broker: Broker) -> BrokerState:
    """The state that is committed."""
    if broker.fenced:
        return BrokerState.FENCED
    if broker.in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def next_state(state: BrokerState, wish: Wish) -> BrokerState:
    """What a heartbeat makes of a broker."""
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
    """What is known of one process of a broker.

    Attributes:
        epoch: The broker epoch of its registration.
        contact_ns: When it was last heard of, monotonic.
        metadata_offset: The last offset it has applied, inclusive; -1 when it has not said.
        shutdown_offset: What the other brokers have to apply before it stops, inclusive; None unless it shuts down.
        doubted_ns: When its connection ended last, monotonic; -1 when none did.
    """

    epoch: int
    contact_ns: int
    metadata_offset: int = -1
    shutdown_offset: int | None = None
    doubted_ns: int = -1

    @property
    def is_in_doubt(self) -> bool:
        """Whether its connection has ended since it was last heard of: it may be gone, and another process come."""
        return self.doubted_ns > self.contact_ns


class BrokerSessions(NamedTuple):
    """All sessions, as a value: each method gives the next one.

    Attributes:
        timeout_ns: ``broker.session.timeout.ms``.
        began_ns: When the controller became active; all times are monotonic.
        by_id: By broker id. Those of brokers that are not registered mean nothing.
    """

    timeout_ns: int
    began_ns: int
    by_id: Mapping[int, BrokerSession] = {}

    def touched(
        self, node_id: int, epoch: int, now_ns: int, metadata_offset: int
    ) -> "BrokerSessions":
        """The broker sent a heartbeat that arrived at ``now_ns``."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        contact_ns = max(old.contact_ns, now_ns)
        heard = old._replace(contact_ns=contact_ns, metadata_offset=metadata_offset)
        return self._with(node_id, heard)

    def doubted(self, node_id: int, epoch: int, now_ns: int) -> "BrokerSessions":
        """The connection to the broker ended. Until a heartbeat arrives another process may take its place."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        return self._with(node_id, old._replace(doubted_ns=now_ns))

    def registered(self, node_id: int, epoch: int, now_ns: int) -> "BrokerSessions":
        """A registration is committed; the session of an earlier process is forgotten."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        return self._with(node_id, old._replace(contact_ns=max(old.contact_ns, now_ns)))

    def shutting_down(self, node_id: int, epoch: int, offset: int) -> "BrokerSessions":
        """The broker's last partition was taken from it at ``offset``, which the others have to apply."""
        old = self._of_epoch(node_id, epoch) or BrokerSession(epoch, self.began_ns)
        return self._with(node_id, old._replace(shutdown_offset=offset))

    def ended(self, node_id: int, epoch: int) -> "BrokerSessions":
        """The broker is fenced and nothing is expected of it: another process may have its id at once."""
        if self._of_epoch(node_id, epoch) is None:
            return self
        rest = {node: found for node, found in self.by_id.items() if node != node_id}
        return self._replace(by_id=rest)

    def is_valid(self, broker: Broker, now_ns: int) -> bool:
        """Whether the process that is registered may be alive: it was heard of within the timeout."""
        contact_ns = self._contact_ns(broker)
        return contact_ns is not None and now_ns - contact_ns <= self.timeout_ns

    def may_be_succeeded(self, broker: Broker, now_ns: int) -> bool:
        """Whether another process may register: the one that is registered is gone, or may be."""
        found = self._of_epoch(broker.node_id, broker.epoch)
        is_in_doubt = found is not None and found.is_in_doubt
        return is_in_doubt or not self.is_valid(broker, now_ns)

    def is_hearsay(self, broker: Broker, now_ns: int, heartbeat_ns: int) -> bool:
        """Whether another controller let in the process that is registered, and this one has never heard of it.

        It had the time for two heartbeats, which come every ``heartbeat_ns``.
        """
        is_unheard = self._of_epoch(broker.node_id, broker.epoch) is None
        return is_unheard and now_ns >= self.began_ns + 2 * heartbeat_ns

    def deadline_ns(self, brokers: Iterable[Broker]) -> int | None:
        """When the next session of an unfenced broker ends: later than this it is stale. None when all are fenced."""
        contacts = (self._contact_ns(broker) for broker in brokers if not broker.fenced)
        ends = [contact + self.timeout_ns for contact in contacts if contact is not None]
        return min(ends, default=None)

    def stale(self, brokers: Iterable[Broker], now_ns: int) -> Broker | None:
        """The unfenced broker not heard of for longest, if its session has ended.

        Args:
            brokers: All that are registered.
            now_ns: Not later than the arrival of any request that has not been decided: a heartbeat that waits counts.
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
        """See `BrokerSession`."""
        found = self._of_epoch(broker.node_id, broker.epoch)
        return found.shutdown_offset if found else None

    def has_applied(self, brokers: Iterable[Broker], offset: int) -> bool:
        """Whether every active broker has applied the metadata log up to and with ``offset``."""
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
