"""One seeded history: nodes, their network, faults, and a client that proposes records.

The world's time is in milliseconds; every event has an entry in one heap. A node's own clock has
another rate and jumps. After the faults there is a time without faults: a leader must be elected,
and a proposal committed on every running node, within `HEALING_MS`. Then the disks of a majority
are slow for `SLOW_MS`, and a leader must work for most of that time. At last the disk of the leader
hangs permanently: another one must be elected, and a proposal committed, within `SUCCESSION_MS`.
"""

import zlib
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random

from pykafka_core.errors import PositionOutOfRangeError, SnapshotNotFoundError
from pykafka_core.protocol.messages import ProducerIdsRecord
from pykafka_core.quorum.events import (
    AppendFetched,
    Failed,
    InstallSnapshot,
    Persist,
    Persisted,
    ReplicaEvent,
    ReplicaOutput,
    Replied,
    Request,
    Respond,
    Send,
    SnapshotInstalled,
    StorePart,
    Tick,
    Truncate,
    Truncated,
)
from pykafka_core.quorum.log.state import NO_VOTERS
from pykafka_core.quorum.log.voters import change_of
from pykafka_core.quorum.quorum import Append, Appended
from pykafka_core.quorum.replica import Replica, begin
from pykafka_core.quorum.roles import NEVER, Leader
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
    Fetch,
    FetchReply,
    FetchSnapshot,
    ReplyBody,
    SnapshotReply,
    VersionsReply,
)
from pykafka_core.quorum.values import (
    Batch,
    OffsetAndEpoch,
    QuorumConfig,
    ReplicaKey,
    Voter,
    VoterSet,
)
from tests.simulation.quorum.disk import Snapshot
from tests.simulation.quorum.faults import NO_FAULTS, Faults
from tests.simulation.quorum.housekeeping import Housekeeping
from tests.simulation.quorum.invariants import Invariants, Violation
from tests.simulation.quorum.mischief import Mischief
from tests.simulation.quorum.node import Asked, Node, proposed
from tests.simulation.quorum.reconfiguration import CLIENT, Operator

VOTERS_COUNTS = (1, 2, 3, 3, 3, 3, 4, 5, 5, 7)
FAULTS_MS = 8_000
HEALING_MS = 6_000
"""Ten fetch timeouts; of 1,500 seeds the slowest needs four."""
SUCCESSION_MS = 4_000
"""Seven fetch timeouts; of 3,000 seeds the slowest needs 3,070 ms."""
FOREVER_MS = 1_000_000
SLOW_MS = 9_000
"""15 fetch timeouts."""
SLOWER_BY_MS = 390, 510
"""Additional duration of a sync, which varies by a fifth: up to a fetch timeout. A leader resigns
after 1.5 of them without a Fetch, and a Fetch may wait for a third of one.
"""
AVAILABILITY = 0.9
"""Part of that time in which a leader works."""
SAMPLE_MS = 20
STEPS_MAX = 50_000
RESPONSE_MS = 1_500
"""After this, a change of the voters has succeeded or failed: two request timeouts, and syncs."""
CONFIG = QuorumConfig(
    election_timeout_ms=300,
    election_backoff_ms_max=300,
    fetch_timeout_ms=600,
    request_timeout_ms=600,
    fetch_wait_ms_max=200,
)
"""Shorter than Kafka's, so that more events fall between two timeouts."""

Action = Callable[[], None]


class World:
    """Runs one seed.

    Args:
        seed: Determines everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.faults = Faults.drawn(self.random)
        self.digest = 0
        self.steps = 0
        self._heap: list[tuple[int, int, Action]] = []
        self._order = count()
        self._numbers = count(1)
        self._directories = count(1)
        self.blocked: set[tuple[int, int]] = set()
        voters = self.random.choice(VOTERS_COUNTS)
        observers = self.random.choice((0, 0, 0, 1, 2))
        keys = [self.new_key(node_id) for node_id in range(1, voters + observers + 1)]
        self.formatted = VoterSet(0, tuple(map(Voter, keys[:voters])), 1)
        self.nodes = [
            Node(key, self.formatted if place < voters or self.chance(0.5) else NO_VOTERS)
            for place, key in enumerate(keys)
        ]
        self._config = CONFIG._replace(joins=self.faults.change_ms_mean > 0 and self.chance(0.3))
        self.invariants = Invariants(self.formatted, self.nodes)
        self.operator = Operator(self)
        self.mischief = Mischief(self)
        self._housekeeping = Housekeeping(self)
        self.is_calm = False
        self._wanted: int | None = None

    def new_key(self, node_id: int) -> ReplicaKey:
        return ReplicaKey(node_id, next(self._directories).to_bytes(16, "big"))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # The run.

    def run(self) -> str:
        """Run the history; return the digest of all events."""
        for node in self.nodes:
            node.clock_ms = self.random.randrange(1_000_000)
            node.rate = self.random.choice((0.95, 1.0, 1.0, 1.05))
            self.at(self.random.randrange(50), self.starter(node))
        self.at(self.mischief.until_fault(), self.mischief.misbehave)
        self.at(self._until_proposal(), self._propose)
        self._housekeeping.begin()
        self.operator.begin()
        self._run_until(FAULTS_MS, lambda: False)
        self._heal()
        self._progress("Progress", HEALING_MS)
        self._slow_down_majority()
        self._progress("Progress", HEALING_MS)
        self._slow_down_leader()
        self._progress("Succession", SUCCESSION_MS, self._can_elect)
        return f"{self.digest:08x} {self.steps} {self.invariants.committed_end} {self.now_ms}"

    def _progress(
        self, invariant: str, within_ms: int, must: Callable[[], bool] = lambda: True
    ) -> None:
        """Run until a proposal is committed on every node whose disk works, if that must be."""
        self._wanted, self._end_before = None, self.invariants.committed_end
        is_over = self._run_until(self.now_ms + within_ms, self._has_progressed)
        if not is_over and must():
            states = {node.node_id: node.replica and node.replica.state for node in self.nodes}
            raise Violation(
                f"{invariant}: nothing is committed everywhere in {within_ms} ms: {states}"
            )

    def _run_until(self, until_ms: int, is_done: Callable[[], bool]) -> bool:
        while not is_done():
            if self._heap[0][0] > until_ms:
                self.now_ms = until_ms
                return False
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise Violation(f"Progress: {STEPS_MAX} steps")
            self.now_ms, _, action = heappop(self._heap)
            action()
        return True

    def at(self, delay_ms: int, action: Action) -> None:
        heappush(self._heap, (self.now_ms + delay_ms, next(self._order), action))

    def _has_progressed(self) -> bool:
        wanted = self._wanted
        return wanted is not None and all(
            node.replica is not None and node.replica.high_watermark >= wanted
            for node in self.nodes
            if self.now_ms >= node.hangs_until_ms
        )

    # Nodes.

    def starter(self, node: Node) -> Action:
        def start() -> None:
            if node.replica is None:
                self._start(node)

        return start

    def _start(self, node: Node) -> None:
        node.life += 1
        node.tick_ms = None
        node.replica, outputs = begin(
            node.key,
            (),
            node.disk.state,
            node.disk.loaded(),
            now_ms=node.now_ms(self.now_ms),
            seed=self.random.getrandbits(64),
            config=self._config,
            bootstrap=tuple(other.node_id for other in self.nodes if other is not node),
            own=Voter(node.key),
        )
        self.invariants.started(node, node.replica)
        self.invariants.stepped(node, node.replica, None, outputs, node.replica.now_ms)
        self._carry_out(node, outputs)

    def later(self, node: Node, delay_ms: int, event: Callable[[int], ReplicaEvent | None]) -> None:
        """Schedule an event of this life of a node.

        A paused node processes it later, with the time of its arrival.
        """
        life = node.life

        def arrive() -> None:
            if node.life == life and node.replica is not None:
                came_ms = node.now_ms(self.now_ms)
                self._when_awake(node, life, lambda: event(came_ms))

        self.at(delay_ms, arrive)

    def _when_awake(self, node: Node, life: int, event: Callable[[], ReplicaEvent | None]) -> None:
        def take() -> None:
            if node.life != life or node.replica is None:
                return
            if self.now_ms < node.paused_until_ms:
                if not node.waits_for_wake:
                    self.at(node.paused_until_ms - self.now_ms, self._waker(node))
                node.waits_for_wake.append(take)
                return
            taken = event()
            if taken is not None:
                self.handle(node, taken)

        take()

    def _waker(self, node: Node) -> Action:
        """Return an action that processes the events of a pause in order, if the pause is over."""

        def wake() -> None:
            came, node.waits_for_wake = node.waits_for_wake, []
            for take in came:
                take()

        return wake

    def handle(self, node: Node, event: ReplicaEvent) -> None:
        assert node.replica is not None
        now_ms = node.now_ms(self.now_ms)
        before = node.replica.at(now_ms)
        node.replica, outputs = before.handle(event)
        replica = node.replica
        step = (
            f"{self.now_ms} {node.node_id} {type(event).__name__} {replica.state} "
            f"{replica.leader_epoch} {replica.log.end} {replica.high_watermark}"
        )
        self.digest = zlib.crc32(step.encode(), self.digest)
        if isinstance(event, Request) and isinstance(event.body, Fetch | FetchSnapshot):
            self.invariants.fetched(node, event.body, event.now_ms)
        self.invariants.stepped(node, before, event, outputs, now_ms)
        self._carry_out(node, outputs)

    def _carry_out(self, node: Node, outputs: list[ReplicaOutput]) -> None:
        for output in outputs:
            self._do(node, output)
        if node.replica is not None:
            self.invariants.carried_out(node, node.replica)
            self._schedule_tick(node)

    def _do(self, node: Node, output: ReplicaOutput) -> None:
        match output:
            case Persist(state):
                node.disk.states.append(state)
                self.later(node, self._sync_ms(node), lambda _: self._persisted(node))
            case Append(leader_epoch, values):
                data = b"".join(values)
                change = change_of(output.records)
                batch = Batch(node.disk.end, leader_epoch, len(values), data, change)
                self._write(node, AppendFetched((batch,)))
            case AppendFetched() | Truncate():
                self._write(node, output)
            case Send():
                self._send(node, output)
            case Respond():
                self._respond(node, output)
            case StorePart():
                self._store(node, output)
            case InstallSnapshot(snapshot_id):
                self._install(node, snapshot_id)
            case Failed():
                self.mischief.crash(node)

    def _schedule_tick(self, node: Node) -> None:
        assert node.replica is not None
        deadline_ms = node.replica.deadline_ms
        if deadline_ms == NEVER:
            node.tick_ms = None
            return
        when = max(node.when(deadline_ms), self.now_ms)
        if node.tick_ms != when:
            node.tick_ms = when
            self.later(node, when - self.now_ms, lambda came_ms: self._tick(node, when, came_ms))

    def _tick(self, node: Node, when: int, came_ms: int) -> ReplicaEvent | None:
        if node.tick_ms != when:
            return None
        node.tick_ms = None
        return Tick(came_ms)

    # Disks.

    def _sync_ms(self, node: Node) -> int:
        hangs_ms = max(0, node.hangs_until_ms - self.now_ms)
        slow_ms = node.slow_ms if self.now_ms < node.slow_until_ms else 0
        slow_ms = int(slow_ms * self.random.uniform(0.8, 1.2))
        sync_ms = hangs_ms + slow_ms + self.random.randint(0, self.faults.sync_ms_max)
        if hangs_ms:
            node.hung_syncs_until_ms = max(node.hung_syncs_until_ms, self.now_ms + sync_ms)
        return sync_ms

    def _persisted(self, node: Node) -> ReplicaEvent:
        node.disk.sync_state()
        return Persisted()

    def _write(self, node: Node, command: AppendFetched | Truncate) -> None:
        if isinstance(command, AppendFetched):
            self.invariants.appended(node, command)
        node.disk.write(command)
        if len(node.disk.writes) == 1:
            self.later(node, self._sync_ms(node), lambda _: self._written(node))

    def _written(self, node: Node) -> ReplicaEvent:
        command = node.disk.sync_log()
        if node.disk.writes:
            self.later(node, self._sync_ms(node), lambda _: self._written(node))
        waiting, node.waiting_reads = node.waiting_reads, []
        for read in waiting:
            self.at(0, read)
        if isinstance(command, Truncate):
            return Truncated()
        return Appended(0, command.batches[0].base_offset)

    # Snapshots.

    def _store(self, node: Node, command: StorePart) -> None:
        node.disk.store(command)
        if self.chance(self.faults.lost):
            node.disk.parts = b""
            self.later(node, 0, lambda _: SnapshotInstalled(None))

    def _install(self, node: Node, snapshot_id: OffsetAndEpoch) -> None:
        """Install in steps with delays: first the snapshot gets its name, then the log is empty."""

        def name(_: int) -> ReplicaEvent | None:
            content, node.disk.parts = node.disk.parts, b""
            if Snapshot.digest(content) is None:
                return SnapshotInstalled(None)
            self.invariants.installed(node, snapshot_id, content)
            node.disk.take(snapshot_id, content, self.invariants.voter_set_at(snapshot_id.offset))
            self.later(node, self._sync_ms(node), replace)
            return None

        def replace(_: int) -> ReplicaEvent:
            node.disk.restart_log(snapshot_id.offset)
            return SnapshotInstalled(snapshot_id, node.disk.snapshot_voters[snapshot_id])

        if node.disk.parts:
            self.later(node, self._sync_ms(node), name)

    def _part(self, node: Node, asked: FetchSnapshot, reply: SnapshotReply) -> SnapshotReply:
        """Return the part of a snapshot in a response."""
        content = node.disk.snapshots.get(asked.snapshot_id)
        if content is None:
            return reply._replace(error_code=SnapshotNotFoundError.code)
        if not 0 <= asked.position < len(content):
            return reply._replace(error_code=PositionOutOfRangeError.code)
        end = asked.position + self.random.randint(1, 20)
        part = content[asked.position : end]
        return reply._replace(size=len(content), position=asked.position, part=part)

    # The network.

    def _delay_ms(self) -> int:
        longest = self.faults.delay_ms_max * (10 if self.chance(0.1) else 1)
        return self.random.randint(0, longest)

    def _is_lost(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) in self.blocked or self.chance(self.faults.lost)

    def _send(self, node: Node, command: Send) -> None:
        if isinstance(command.body, AddVoter):
            self.operator.joining[node.key] = self.now_ms
        receiver = self.nodes[command.node_id - 1]
        asked = Asked(node.node_id, node.life, command.correlation, command.body)
        node.waited_for.add(command.correlation)
        self.later(
            node, command.timeout_ms, lambda now: self._end(node, now, command.correlation, None)
        )
        if receiver.replica is None and self.chance(0.5):
            refused_ms = self._delay_ms()
            self.later(
                node,
                refused_ms,
                lambda now: self._end(node, now, command.correlation, None, is_gone=True),
            )
        elif not self._is_lost(node.node_id, receiver.node_id):
            for _ in range(2 if self.chance(self.faults.doubled) else 1):
                self.at(self._delay_ms(), lambda: self._arrive(receiver, asked))

    def _end(
        self,
        node: Node,
        now_ms: int,
        correlation: int,
        reply: ReplyBody | None,
        *,
        is_gone: bool = False,
    ) -> ReplicaEvent | None:
        """End a request once; ignore a second response, and a timeout after the response."""
        if correlation not in node.waited_for:
            return None
        node.waited_for.remove(correlation)
        return Replied(now_ms, correlation, reply, is_gone)

    def _arrive(self, receiver: Node, asked: Asked) -> None:
        if receiver.replica is not None and isinstance(asked.body, AskVersions):
            self._reply(receiver, asked, VersionsReply(0, versions=(0, 1)))
        elif receiver.replica is not None:
            number = next(self._numbers)
            receiver.open[number] = asked
            self.later(receiver, 0, lambda now: Request(now, number, asked.body))

    def ask(self, node: Node, asked: Asked) -> None:
        """Deliver a client's request without a delay."""
        number, life = next(self._numbers), node.life
        node.open[number] = asked
        self.handle(node, Request(node.now_ms(self.now_ms), number, asked.body))

        def check() -> None:
            disk_until_ms = max(node.hangs_until_ms, node.slow_until_ms + 2 * node.slow_ms)
            waits_until_ms = max(node.paused_until_ms, disk_until_ms, node.hung_syncs_until_ms)
            if self.now_ms < waits_until_ms + RESPONSE_MS:
                self.at(RESPONSE_MS, check)
            elif node.life == life and node.replica is not None and node.open.get(number) is asked:
                raise Violation(f"OneResponse: {node.key} owes a response to {asked.body}")

        self.at(RESPONSE_MS, check)

    def _respond(self, node: Node, command: Respond) -> None:
        asked = node.open.pop(command.number)
        if command.read_from is not None and node.delays_reads and node.disk.writes:
            node.waiting_reads.append(lambda: self._respond_to(node, asked, command))
        else:
            self._respond_to(node, asked, command)

    def _respond_to(self, node: Node, asked: Asked, command: Respond) -> None:
        body: ReplyBody = command.body
        if command.read_from is not None:
            assert isinstance(body, FetchReply)
            body = body._replace(batches=self._read(node, body.epoch, command.read_from))
        if isinstance(body, SnapshotReply) and not body.error_code:
            assert isinstance(asked.body, FetchSnapshot)
            body = self._part(node, asked.body, body)
        if asked.node_id != CLIENT:
            self._reply(node, asked, body)

    def _read(self, node: Node, epoch: int, offset: int) -> tuple[Batch, ...]:
        """Read a log; an empty result if its node does not lead in that epoch any more."""
        replica = node.replica
        if replica is None or replica.leader_epoch != epoch or not isinstance(replica.role, Leader):
            return ()
        is_there = node.disk.start <= offset < node.disk.end
        return node.disk.read(offset, self.random.randint(1, 4)) if is_there else ()

    def _reply(self, node: Node, asked: Asked, body: ReplyBody) -> None:
        sender = self.nodes[asked.node_id - 1]
        if self._is_lost(node.node_id, sender.node_id):
            return

        def arrive() -> None:
            if sender.life == asked.life:
                self.later(sender, 0, lambda now: self._end(sender, now, asked.correlation, body))

        for _ in range(2 if self.chance(self.faults.doubled) else 1):
            self.at(self._delay_ms(), arrive)

    # The client.

    def _until_proposal(self) -> int:
        return self.random.randint(10, 250)

    def _propose(self) -> None:
        ready = [
            node
            for node in self.nodes
            if node.replica is not None
            and node.replica.can_propose
            and self.now_ms >= node.paused_until_ms
        ]
        if ready and self._wanted is None:
            node = self.random.choice(ready)
            records = [ProducerIdsRecord()] * self.random.randint(1, 3)
            node.proposal = proposed(next(self._numbers), records)
            self.handle(node, node.proposal)
            if not self.is_calm and self.chance(self.faults.ambush):
                self.at(self.random.randint(0, 15), self.mischief.ambush(node))
        self.at(self._until_proposal(), self._propose)
        if self.is_calm and self._wanted is None:
            self._want()

    def _want(self) -> None:
        """Choose the first batch committed after the faults: at the end every node must have it."""
        if self.invariants.committed_end > self._end_before:
            self._wanted = self.invariants.committed_end

    def _heal(self) -> None:
        self.faults = NO_FAULTS
        self.is_calm = True
        self.blocked = set()
        for node in self.nodes:
            node.paused_until_ms = min(node.paused_until_ms, self.now_ms)
            node.hangs_until_ms = node.slow_until_ms = self.now_ms
            self.at(0, self._waker(node))
            self.at(0, self.starter(node))

    def _slow_down_majority(self) -> None:
        """Check Availability: if no majority is faster than the leader, it leads on."""
        self.faults = NO_FAULTS._replace(delay_ms_max=2)
        by_ms = self.random.choice(SLOWER_BY_MS)
        leads = [node for node in self.nodes if node.replica and _leads_voters(node.replica)]
        if not leads:
            return  # the leader is being removed
        others = [node for node in self.nodes if node not in leads]
        fast = {self.random.choice(others)} if len(others) > 1 and self.chance(0.5) else set()
        until_ms = self.now_ms + SLOW_MS
        for node in self.nodes:
            if node not in fast:
                node.slow_down(until_ms, by_ms, delays_reads=False)
        changed_at = self._changed_at()
        self._wanted, self._end_before = None, NEVER  # the client continues
        worked = list[bool]()
        while self.now_ms < until_ms:
            self._run_until(self.now_ms + SAMPLE_MS, lambda: False)
            worked.append(any(node.replica and _works(node.replica) for node in self.nodes))
        part = sum(worked) / len(worked)
        if part < AVAILABILITY and changed_at == self._changed_at():
            raise Violation(f"Availability: a leader works {part:.0%} of the time")
        self.faults = NO_FAULTS

    def _slow_down_leader(self) -> None:
        """Let the leader's disk hang."""
        leader = self.mischief.leader()
        leader.hang(self.now_ms + FOREVER_MS, delays_reads=self.chance(0.5))

    def _can_elect(self) -> bool:
        """Return whether voters whose disks work are a majority of each voter set in use."""
        well = {node.key for node in self.nodes if self.now_ms >= node.hangs_until_ms}
        sets = {node.replica.voters for node in self.nodes if node.replica is not None}
        return all(len(well & set(voters)) > len(voters) // 2 for voters in sets)

    def _changed_at(self) -> int:
        """Return the end of the newest voter set."""
        return max(node.replica.log.voter_set.end for node in self.nodes if node.replica)


def _leads_voters(replica: Replica) -> bool:
    return isinstance(replica.role, Leader) and replica.is_voter


def _works(replica: Replica) -> bool:
    """Return whether a replica leads, and has committed in its epoch."""
    role = replica.role
    return isinstance(role, Leader) and replica.high_watermark > role.epoch_start


def run_seed(seed: int) -> str:
    """Run a seed; return the digest of all events."""
    return World(seed).run()
