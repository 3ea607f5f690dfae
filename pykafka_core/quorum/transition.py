"""The mutable parts of a replica while it handles one event, and its outputs.

No output may depend on state that is not on disk: while quorum-state is being written, all commands
except `Persist` are held back, in order. So a crash cannot lose a vote that was granted, requested
or counted, nor an epoch in which a record was written.
"""

from pykafka_core.quorum.events import Command, Failed, Persist, ReplicaOutput, Respond, Send
from pykafka_core.quorum.log.state import LogState
from pykafka_core.quorum.roles import Leader, Role
from pykafka_core.quorum.rpc import Body
from pykafka_core.quorum.values import ElectionState, QuorumConfig, ReplicaKey, Voter

HELD_MAX = 1000
"""Commands to hold back while quorum-state is written. Requests arrive without a limit, but a peer
has one open at a time: the oldest responses are to requests that have timed out.
"""


class Transition:
    """The fields of a `Replica` (described there), mutable, and the outputs of this event.

    ``came_ms`` is the arrival time of the event, which is before ``now_ms`` if it was queued.
    """

    __slots__ = (
        "backoffs",
        "bootstrap",
        "came_ms",
        "config",
        "correlation",
        "election",
        "held",
        "high_watermark",
        "installing",
        "is_failed",
        "key",
        "log",
        "now_ms",
        "outputs",
        "own",
        "persisting",
        "role",
        "seed",
        "sent",
        "stalls",
    )

    def __init__(
        self,
        key: ReplicaKey,
        config: QuorumConfig,
        seed: int,
        now_ms: int,
        election: ElectionState,
        role: Role,
        log: LogState,
        high_watermark: int,
        persisting: int,
        held: tuple[Command, ...],
        correlation: int,
        sent: tuple[tuple[int, int, Body], ...],
        backoffs: tuple[tuple[int, int], ...],
        installing: bool,
        is_failed: bool,
        bootstrap: tuple[int, ...],
        own: Voter | None,
        stalls: int,
    ) -> None:
        self.key = key
        self.config = config
        self.seed = seed
        self.now_ms = self.came_ms = now_ms
        self.election = election
        self.role = role
        self.log = log
        self.high_watermark = high_watermark
        self.persisting = persisting
        self.held = held
        self.correlation = correlation
        self.sent = sent
        self.backoffs = backoffs
        self.installing = installing
        self.is_failed = is_failed
        self.bootstrap = bootstrap
        self.own = own
        self.stalls = stalls
        self.outputs: list[ReplicaOutput] = []

    # The quorum.

    @property
    def voters(self) -> tuple[ReplicaKey, ...]:
        """The effective voter set: the newest one in the log, committed or not."""
        return self.log.voter_set.keys

    @property
    def is_voter(self) -> bool:
        """Whether this replica, not only its node id, is in the voter set."""
        return self.key in self.voters

    @property
    def stands(self) -> bool:
        """Whether this replica can start elections: as a voter, or if its removal is uncommitted.

        A leader that appended its own removal may have the longest log. If it could not be elected,
        the others might not be able to win either, and certainly not if there were two voters
        (Ongaro 2014, 4.2.2).
        """
        sets = self.log.voter_sets
        is_settled = sets[-1].end <= self.high_watermark
        return self.is_voter or (not is_settled and any(self.key in one.keys for one in sets))

    @property
    def others(self) -> tuple[ReplicaKey, ...]:
        """The voters on other nodes."""
        return tuple(voter for voter in self.voters if voter.node_id != self.key.node_id)

    @property
    def majority(self) -> int:
        """The number of voters that form a majority."""
        return len(self.voters) // 2 + 1

    @property
    def leader_id(self) -> int:
        """The leader to name in responses."""
        return leader_to_name(self.key, self.election, self.role)

    # Outputs.

    def emit(self, command: Command) -> None:
        """Output a command, after quorum-state is written if a write is pending."""
        if self.persisting:
            self.held += (command,)
            if len(self.held) > HELD_MAX:
                self._drop_reply()
        else:
            self.outputs.append(command)

    def _drop_reply(self) -> None:
        """Drop the oldest held response: its request has probably timed out."""
        oldest = next((one for one in self.held if isinstance(one, Respond)), None)
        self.held = tuple(held for held in self.held if held is not oldest)

    def elect(self, election: ElectionState) -> None:
        """Change quorum-state. Epochs never decrease, and a vote within an epoch never changes."""
        before = self.election
        assert election.epoch >= before.epoch, "epochs never go back"
        assert election.epoch > before.epoch or before.voted in (None, election.voted), "one vote"
        if election != before:
            self.election = election
            self.persisting += 1
            self.outputs.append(Persist(election))

    def persisted(self) -> None:
        """Handle a completed `Persist`; after the last one, release the held commands."""
        assert self.persisting, "quorum-state is written as often as asked for"
        self.persisting -= 1
        if not self.persisting:
            self.outputs.extend(self.held)
            self.held = ()

    def fail(self, error_code: int) -> None:
        """Stop handling events."""
        self.is_failed = True
        self.held = ()
        self.outputs.append(Failed(error_code))

    # Requests to other nodes: at most one in flight per node.

    def send(self, node_id: int, body: Body) -> None:
        """Send a request to a node, unless one is in flight or the node is in its backoff."""
        if any(busy == node_id for _, busy, _ in self.sent):
            return
        if any(node == node_id and self.now_ms < until for node, until in self.backoffs):
            return
        self.correlation += 1
        self.sent += ((self.correlation, node_id, body),)
        self.emit(Send(self.correlation, node_id, body, self.config.request_timeout_ms))

    def take_sent(self, correlation: int) -> tuple[int, Body] | None:
        """Complete a request; return its node and body, or None if it is not expected."""
        for entry in self.sent:
            if entry[0] == correlation:
                self.sent = tuple(other for other in self.sent if other is not entry)
                return entry[1], entry[2]
        return None

    def back_off(self, node_id: int, pause_ms: int | None = None) -> None:
        """Send no requests to a node for a while, by default for ``retry_backoff_ms``."""
        until = self.now_ms + (self.config.retry_backoff_ms if pause_ms is None else pause_ms)
        kept = (one for one in self.backoffs if one[0] != node_id and one[1] > self.now_ms)
        self.backoffs = (*kept, (node_id, until))

    def forget_requests(self) -> None:
        """Drop the requests of the previous state, and records in responses that are held back."""
        self.sent = ()
        self.backoffs = ()
        self.held = tuple(held for held in self.held if not isinstance(held, Send))
        self.withhold_records(self.log.end)

    def withhold_records(self, below: int) -> None:
        """Remove records from held responses if they start below an offset."""
        self.held = tuple(
            held._replace(read_from=None)
            if isinstance(held, Respond) and held.read_from is not None and held.read_from < below
            else held
            for held in self.held
        )

    # Randomness.

    def drawn(self, bound: int) -> int:
        """Return a random number below ``bound`` (SplitMix64)."""
        self.seed = (self.seed + 0x9E3779B97F4A7C15) & _MASK
        mixed = self.seed
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % bound

    def election_deadline(self) -> int:
        """Return the timeout of an election that starts now."""
        timeout = self.config.election_timeout_ms
        return self.now_ms + timeout + self.drawn(timeout)


_MASK = 2**64 - 1


def leader_to_name(key: ReplicaKey, election: ElectionState, role: Role) -> int:
    """Return the leader of an epoch, or -1. A replica names itself only while it leads."""
    named = election.leader_id
    return named if named != key.node_id or isinstance(role, Leader) else -1
