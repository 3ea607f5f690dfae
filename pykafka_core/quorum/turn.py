"""One event's turn: the parts of a replica while they change, and how outputs leave it.

Nothing leaves a replica before what it claims is on the disk: while quorum-state is being written, every command but
`Persist` is held back, in order. So a crash can make it forget neither a vote that was given, asked for or counted, nor
an epoch in which a record was written.
"""

from pykafka_core.quorum.events import Answer, Command, Failed, Persist, ReplicaOutput, Send
from pykafka_core.quorum.log.state import LogState
from pykafka_core.quorum.roles import Leader, Role
from pykafka_core.quorum.rpc import Body
from pykafka_core.quorum.values import ElectionState, QuorumConfig, ReplicaKey, Voter


class Turn:
    """The fields of a `Replica` (described there), to be changed, and what this turn puts out.

    ``came_ms`` is when its event came, which may be before ``now_ms`` if it waited in a queue.
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
        self.outputs: list[ReplicaOutput] = []

    # The quorum.

    @property
    def voters(self) -> tuple[ReplicaKey, ...]:
        """The voter set that counts: the newest one of the log, committed or not."""
        return self.log.voter_set.keys

    @property
    def is_voter(self) -> bool:
        """Whether this replica, not only its node id, is in the voter set."""
        return self.key in self.voters

    @property
    def stands(self) -> bool:
        """Whether this replica stands for election: as a voter, or as one whose removal may not be committed.

        A leader that appended its own removal may have the longest log; without its record nobody else might win, and
        where two voters were left nobody could (Ongaro 2014, 4.2.2).
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
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    @property
    def leader_id(self) -> int:
        """The leader to name to others."""
        return leader_to_name(self.key, self.election, self.role)

    # What goes out.

    def emit(self, command: Command) -> None:
        """A command, now or when quorum-state is written."""
        if self.persisting:
            self.held += (command,)
        else:
            self.outputs.append(command)

    def elect(self, election: ElectionState) -> None:
        """Change quorum-state; epochs never go back, and nor does a vote within one."""
        before = self.election
        assert election.epoch >= before.epoch, "epochs never go back"
        assert election.epoch > before.epoch or before.voted in (None, election.voted), "one vote"
        if election != before:
            self.election = election
            self.persisting += 1
            self.outputs.append(Persist(election))

    def persisted(self) -> None:
        """The oldest `Persist` is on the disk; with the last one goes what was held back."""
        assert self.persisting, "quorum-state is written as often as asked for"
        self.persisting -= 1
        if not self.persisting:
            self.outputs.extend(self.held)
            self.held = ()

    def fail(self, error_code: int) -> None:
        """Nothing is done from now on."""
        self.is_failed = True
        self.held = ()
        self.outputs.append(Failed(error_code))

    # Requests to others: one at a time to each node.

    def send(self, node_id: int, body: Body) -> None:
        """Ask a node, unless it has a request of ours, or failed to answer one just now."""
        if any(busy == node_id for _, busy, _ in self.sent):
            return
        if any(node == node_id and self.now_ms < until for node, until in self.backoffs):
            return
        self.correlation += 1
        self.sent += ((self.correlation, node_id, body),)
        self.emit(Send(self.correlation, node_id, body, self.config.request_timeout_ms))

    def take_sent(self, correlation: int) -> tuple[int, Body] | None:
        """Node and body of a request that is waited for, which ends with this; None for an older one."""
        for entry in self.sent:
            if entry[0] == correlation:
                self.sent = tuple(other for other in self.sent if other is not entry)
                return entry[1], entry[2]
        return None

    def back_off(self, node_id: int, pause_ms: int | None = None) -> None:
        """Leave a node alone for a while, by default for ``retry_backoff_ms``."""
        until = self.now_ms + (self.config.retry_backoff_ms if pause_ms is None else pause_ms)
        kept = (one for one in self.backoffs if one[0] != node_id and one[1] > self.now_ms)
        self.backoffs = (*kept, (node_id, until))

    def forget_requests(self) -> None:
        """No answer to what another state asked is waited for, and nothing that it promised is read."""
        self.sent = ()
        self.backoffs = ()
        self.held = tuple(held for held in self.held if not isinstance(held, Send))
        self.withhold_records(self.log.end)

    def withhold_records(self, below: int) -> None:
        """Answers that are held back go without records, if these would begin below an offset."""
        self.held = tuple(
            held._replace(read_from=None)
            if isinstance(held, Answer) and held.read_from is not None and held.read_from < below
            else held
            for held in self.held
        )

    # Chance.

    def drawn(self, bound: int) -> int:
        """A number below ``bound`` (SplitMix64)."""
        self.seed = (self.seed + 0x9E3779B97F4A7C15) & _MASK
        mixed = self.seed
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % bound

    def election_deadline(self) -> int:
        """When an election that begins now is late."""
        timeout = self.config.election_timeout_ms
        return self.now_ms + timeout + self.drawn(timeout)


_MASK = 2**64 - 1


def leader_to_name(key: ReplicaKey, election: ElectionState, role: Role) -> int:
    """The leader of an epoch, or -1; one that resigned, or led before a restart, does not name itself."""
    named = election.leader_id
    return named if named != key.node_id or isinstance(role, Leader) else -1
