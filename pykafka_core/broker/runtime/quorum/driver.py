"""Drives a replica of the metadata quorum: passes events to it, executes its commands, forwards its
notices.

Only this module holds the replica. Events wait in one queue: an event caused by a command is
handled after the earlier commands have been started. Writes of the log and of quorum-state do not
block the control thread (`log_writes.py`, `state_writes.py`); only a stop waits for quorum-state.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import assert_never

from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.metadata.quorum_port import Replaced
from pykafka_core.broker.runtime.quorum.committed_log import CommittedLog
from pykafka_core.broker.runtime.quorum.log_writes import LogWrites
from pykafka_core.broker.runtime.quorum.raft_transport import AskedQuorum, Exchange
from pykafka_core.broker.runtime.quorum.snapshot_install import Installation
from pykafka_core.broker.runtime.quorum.state_writes import StateWrites, Write
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.runtime.timers import Timer
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.storage.snapshot_parts import LoadedSnapshot, SnapshotParts
from pykafka_core.broker.storage.voters import quorum_records_of, voter_set_of
from pykafka_core.errors import StorageError, error_of
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.quorum import events
from pykafka_core.quorum.quorum import Append, Committed, Proposal
from pykafka_core.quorum.replica import Replica
from pykafka_core.quorum.roles import NEVER, Follower, Leader
from pykafka_core.quorum.rpc import BeginQuorumEpoch, ReplyBody
from pykafka_core.quorum.static_voters import static_ids
from pykafka_core.quorum.transition import HELD_MAX
from pykafka_core.quorum.values import OffsetAndEpoch
from pykafka_core.quorum.wire.envelope import Endpoint
from pykafka_core.types import NS_PER_MS

_log = GuardedLogger(__name__)


class ReplicaDriver:
    """The only owner of the replica's value; implements `QuorumPort`.

    Args:
        services: Has the metadata log, the clocks, and the timer that wakes the loop at the
            replica's deadline.
        exchange: Communicates with other replicas.
        initial: The initial replica and its first outputs.
        persist: Writes and syncs quorum-state, on a separate thread; also gets the node ids of
            static voters.
        parts: Collects the parts of the leader's snapshot.
        make_way: See `LogWrites`.
        next_offset: End of the image.
    """

    def __init__(
        self,
        services: Services,
        *,
        exchange: Exchange,
        initial: tuple[Replica, list[events.ReplicaOutput]],
        persist: Write,
        parts: SnapshotParts,
        make_way: Callable[[], bool],
        next_offset: int = 0,
    ) -> None:
        core, completions = services.core, services.completions
        self._core = core
        self._timers = services.timers
        self._exchange = exchange
        self._states = StateWrites(core, persist, self._on_persisted)
        self._writes = LogWrites(core, completions, self.handle, make_way)
        self.committed = CommittedLog(core, completions, next_offset)
        self._installation = Installation(core, completions, parts, self._on_installed)
        self._told: deque[events.SnapshotTaken | events.LogCleaned] = deque()
        """Events from other threads."""
        self._is_in_doubt = False
        """Whether the controller has not yet taken the end of a proposal."""
        self._events: deque[events.ReplicaEvent] = deque()
        self._is_handling = False
        self._timer: Timer | None = None
        self._replica, self._begun = initial
        exchange.know(self._replica.log.voter_set.voters)

    @property
    def quorum(self) -> Replica:
        """The current replica."""
        return self._replica

    @property
    def leads(self) -> bool:
        """Whether this node is the active controller."""
        return isinstance(self._replica.role, Leader)

    @property
    def can_propose(self) -> bool:
        """Whether this node leads, all notices were taken, and no batch is in flight."""
        return self._replica.can_propose and not self.committed and not self._is_in_doubt

    @property
    def has_notice(self) -> bool:
        """Whether `take_notice` returns a notice or raises."""
        return self._is_in_doubt or self.committed.is_ready

    @property
    def leaders_end(self) -> int | None:
        """Exclusive end of the batches that the leader last reported as committed; None if
        unknown.
        """
        role, own = self._replica.role, self._replica.high_watermark
        if isinstance(role, Leader):
            return own if own > role.epoch_start else None
        known = role.leader_high_watermark if isinstance(role, Follower) else 0
        return known or None

    def has_taken(self, end: int) -> bool:
        """Return whether everything before ``end`` is known as committed and was taken."""
        return self._replica.high_watermark >= end and not self.committed

    def propose(self, proposal: Proposal) -> None:
        """Propose a batch."""
        self.handle(proposal)

    def take_notice(self) -> Committed | Replaced | events.InDoubt | None:
        """Return the end of a proposal, the next committed batch, or a snapshot that replaces
        earlier ones.

        A proposal in doubt is returned first: a batch that follows is not its commit.

        Raises:
            MetadataError: It cannot be read, or holds unknown records.
        """
        if self._is_in_doubt:
            self._is_in_doubt = False
            return events.InDoubt()
        return self.committed.take()

    def begin(self) -> None:
        """Execute the initial outputs; called once, before anything else."""
        outputs, self._begun = self._begun, []
        self._note_high_watermark(0)
        self._carry_out(outputs)
        self._handle_all()

    def take(self, request: AskedQuorum) -> None:
        """Handle a request of another replica, or one that changes the voters; it is in the table
        of open requests.
        """
        heard = self._exchange.hear(request)
        if heard is not None:
            now_ms = heard.received_ns // NS_PER_MS
            if heard.leader_at is not None and isinstance(heard.body, BeginQuorumEpoch):
                self._learn_leader(heard.body, heard.leader_at)
            self.handle(events.Request(now_ms, heard.number, heard.body))

    def _learn_leader(self, begin: BeginQuorumEpoch, at: Endpoint) -> None:
        """Use the address in a leader's BeginQuorumEpoch if this replica will follow it; the voter
        set may have an old address.
        """
        epoch, known = self._replica.leader_epoch, self._replica.leader_id
        if begin.epoch > epoch or (begin.epoch == epoch and known in (-1, begin.leader_id)):
            self._exchange.learn(begin.leader_id, at)

    def tell(self, event: events.SnapshotTaken | events.LogCleaned) -> None:
        """Add an event about this node's snapshots, from any thread."""
        self._told.append(event)
        self._core.wake()

    def snapshot_id(self, end: int) -> OffsetAndEpoch | None:
        """Return the id of a snapshot of everything before ``end``, the image's end; None if such a
        snapshot exists.
        """
        log = self._replica.log
        known = 0 if log.newest is None else log.newest.offset
        return log.id_at(end) if end > known else None

    def quorum_records(self, end: int) -> QuorumRecords:
        """Return the quorum's own records for a snapshot of everything before ``end``, which is
        committed.
        """
        return quorum_records_of(self._replica.log.voter_set_at(end))

    def finish(self) -> None:
        """Wait for other threads; called when the control thread has stopped."""
        self._installation.finish()
        self._states.finish()

    def advance(self) -> None:
        """Handle results of other threads, and the replica's deadline if the core's horizon has
        passed it.
        """
        self._installation.advance()
        self._states.advance()
        while self._told:
            event = self._told.popleft()
            log, end = self._replica.log, event.snapshot_id.offset
            # A snapshot of the leader may have replaced the log of this event.
            if log.start < end <= self._replica.high_watermark:
                self.handle(event)
        now_ms = self._core.horizon_ns() // NS_PER_MS
        if now_ms >= self._replica.deadline_ms:
            self.handle(events.Tick(now_ms))

    def handle(self, event: events.ReplicaEvent) -> None:
        """Handle an event. Exceptions of commands and notices are raised."""
        self._events.append(event)
        self._handle_all()

    def _handle_all(self) -> None:
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events:
                before = self._replica.at(self._core.now_ns() // NS_PER_MS)
                self._replica, outputs = before.handle(self._events.popleft())
                self._note_high_watermark(before.high_watermark)
                self._warn_of_drops(before)
                voter_set = self._replica.log.voter_set
                if voter_set is not before.log.voter_set:
                    self._exchange.know(voter_set.voters)
                self._carry_out(outputs)
        finally:
            self._is_handling = False
        self._states.begin()
        self._arm()

    def _warn_of_drops(self, before: Replica) -> None:
        if len(before.held) < HELD_MAX <= len(self._replica.held):
            _log.warning("quorum-state is not written: over %d responses wait for it", HELD_MAX)

    def _note_high_watermark(self, before: int) -> None:
        if self._replica.high_watermark > before:
            self._core.commit(METADATA_PARTITION, self._replica.high_watermark)

    def _arm(self) -> None:
        """Set a timer for the replica's next deadline; `advance` is called after every wake-up."""
        deadline_ms = self._replica.deadline_ms
        due_ns = deadline_ms * NS_PER_MS
        if self._timer is not None:
            if self._timer.due_ns == due_ns and not self._timer.is_over:
                return
            self._timer.cancel()
        self._timer = None
        if deadline_ms != NEVER:
            self._timer = self._timers.once("the metadata quorum", due_ns, _wake)

    def _carry_out(self, outputs: list[events.ReplicaOutput]) -> None:
        for output in outputs:
            match output:
                case events.Persist(state):
                    self._states.add(state, static_ids(self._replica.log.voter_set))
                case events.Send():
                    self._exchange.send(output, self._on_replied)
                case events.Respond():
                    self._exchange.respond(
                        output, partial(self._leads_in, self._replica.leader_epoch)
                    )
                case Append() | events.AppendFetched() | events.Truncate():
                    self._writes.add(output)
                case events.StorePart():
                    self._installation.store(output)
                case events.InstallSnapshot(snapshot_id):
                    self._installation.install(snapshot_id)
                case Committed() | events.Advanced():
                    self.committed.note(output)
                case events.InDoubt():
                    self._is_in_doubt = True
                case events.LeaderChanged():
                    pass  # the leader is read from the replica when needed
                case events.Failed(error_code):
                    raise StorageError(
                        f"the metadata log or quorum-state cannot be written: {error_of(error_code).name}"
                    )
                case _:
                    assert_never(output)

    def _on_persisted(self) -> None:
        self.handle(events.Persisted())

    def _on_installed(self, snapshot_id: OffsetAndEpoch, loaded: LoadedSnapshot | None) -> None:
        if loaded is not None:
            self.committed.replace(loaded, snapshot_id.offset)
            voters = voter_set_of(loaded.quorum, snapshot_id.offset)
            self.handle(events.SnapshotInstalled(snapshot_id, voters))
        else:
            self.handle(events.SnapshotInstalled(None))

    def _leads_in(self, epoch: int) -> bool:
        return self.leads and self._replica.leader_epoch == epoch

    def _on_replied(self, correlation: int, reply: ReplyBody | None, is_gone: bool) -> None:
        now_ms = self._core.now_ns() // NS_PER_MS
        self.handle(events.Replied(now_ms, correlation, reply, is_gone))


def _wake() -> None:
    """Do nothing: the loop calls `advance` after any timer."""
