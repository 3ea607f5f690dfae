"""One node of a metadata quorum of 1 to 7 voters, as a pure value: KRaft.

Theory of operation. `begin` creates the value from the content of a disk. ``handle`` takes an event
and returns the next value and its outputs: commands to execute and notices to forward
(``events.py`` defines them and the driver's duties). A value gets the time only from `at` and
events, requests a `Tick` by ``deadline_ms``, and draws random timeouts from a seed that it
contains. So the same value and event always have the same result.

- ``roles.py``: the states and their responses. ``transitions.py``: transitions between them.
- ``election.py``: votes, pre-votes, start and end of epochs. ``leader.py``: fetches, the high
  watermark, check quorum.
- ``follower.py``: fetching, truncation by epoch, snapshots. ``timeouts.py``: requests and timeouts
  of each state.
- ``voter_changes.py``: changes of the voter set. ``static_voters.py``: sets that never change.
- ``log``: the state of the log, its voter sets, and their records. ``wire``: Kafka's messages.
- ``transition.py``: the mutable state while an event is handled; outputs wait for quorum-state.

Committed records are kept by four rules: a voter reports in Fetch only synced records; a leader
commits what a majority of the voters has reported, including itself once it has synced, and only up
to records of its epoch; votes go to logs that are at least as up to date; and a replica that
restarts leads in a later epoch or not at all.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, assert_never

from pykafka_core.quorum.election import (
    on_begin_quorum_epoch,
    on_end_quorum_epoch,
    on_epoch_reply,
    on_gone,
    on_vote,
    on_vote_reply,
)
from pykafka_core.quorum.events import (
    Command,
    InDoubt,
    LeaderChanged,
    LogCleaned,
    Persisted,
    ReplicaEvent,
    ReplicaOutput,
    Replied,
    Request,
    Resign,
    SnapshotInstalled,
    SnapshotTaken,
    Tick,
    Truncated,
)
from pykafka_core.quorum.follower import (
    follow_high_watermark,
    on_fetch_reply,
    on_installed,
    on_snapshot_reply,
)
from pykafka_core.quorum.leader import (
    advance,
    note_appended,
    on_fetch,
    on_fetch_snapshot,
    on_proposal,
)
from pykafka_core.quorum.log.state import TRUNCATION, LogState
from pykafka_core.quorum.quorum import Appended, Proposal, VoterState
from pykafka_core.quorum.raising import raising_problem
from pykafka_core.quorum.roles import (
    NEVER,
    Follower,
    Leader,
    Progress,
    Resigned,
    Role,
    Unattached,
)
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    EpochReply,
    Fetch,
    FetchReply,
    FetchSnapshot,
    RemoveVoter,
    SnapshotReply,
    UpdateVoter,
    VersionsReply,
    Vote,
    VoteReply,
    VoterReply,
)
from pykafka_core.quorum.static_voters import as_known, take_own_name
from pykafka_core.quorum.timeouts import act, expire, role_deadline
from pykafka_core.quorum.transition import Transition, leader_to_name
from pykafka_core.quorum.transitions import (
    count_own_vote,
    grant_time,
    to_follower,
    to_prospective,
    to_resigned,
    to_unattached,
)
from pykafka_core.quorum.values import (
    ElectionState,
    QuorumConfig,
    ReplicaKey,
    Voter,
    VoterEndpoint,
    VoterSet,
)
from pykafka_core.quorum.voter_changes import on_versions_reply, on_voter_reply, on_voter_request

VOTERS_MAX = 7
DEFAULTS = QuorumConfig()


class Replica(NamedTuple):
    """A voter or an observer.

    Attributes:
        seed: Seed of the next random timeout.
        now_ms: The latest time of an event.
        election: The content of quorum-state once all pending `Persist` commands are done.
        high_watermark: Exclusive end of the records that are committed and synced by this replica.
        persisting: Number of pending `Persist` commands.
        held: Commands that wait for them.
        correlation: Correlation id of the last `Send`.
        sent: Correlation id, node and body of each request in flight.
        backoffs: Nodes, and the time until which no request is sent to them.
        installing: Whether an `InstallSnapshot` is pending.
        is_failed: Whether the replica has failed and ignores events.
        bootstrap: Nodes, in addition to known voters, from which an observer can get the leader.
        own: The voter set's entry for this node, if it is a controller that can be a voter.
        stalls: Number of resignations for a slow disk, since an append of this leader was quick.
    """

    key: ReplicaKey
    config: QuorumConfig
    seed: int
    now_ms: int
    election: ElectionState
    role: Role
    log: LogState
    high_watermark: int = 0
    persisting: int = 0
    held: tuple[Command, ...] = ()
    correlation: int = 0
    sent: tuple[tuple[int, int, Body], ...] = ()
    backoffs: tuple[tuple[int, int], ...] = ()
    installing: bool = False
    is_failed: bool = False
    bootstrap: tuple[int, ...] = ()
    own: Voter | None = None
    stalls: int = 0

    @property
    def voters(self) -> tuple[ReplicaKey, ...]:
        """The effective voter set: the newest one in the log, committed or not; ids are unique."""
        return self.log.voter_set.keys

    @property
    def kraft_version(self) -> int:
        """0 with static voters, which never change; 1 if the voters are in the log."""
        return self.log.voter_set.kraft_version

    def kraft_version_problem(self, level: int) -> str | None:
        """Return why ``kraft.version`` cannot be raised to a level; None if it can."""
        return raising_problem(self.log.voter_set, self.own, self.role, level)

    @property
    def is_voter(self) -> bool:
        """Whether this replica, not only its node id, is in the voter set."""
        return self.key in self.voters

    @property
    def leader_id(self) -> int:
        """The known leader, or -1."""
        return leader_to_name(self.key, self.election, self.role)

    @property
    def leader_epoch(self) -> int:
        """The current epoch."""
        return self.election.epoch

    @property
    def log_end_offset(self) -> int:
        """Offset of the next proposed record."""
        return self.log.end

    @property
    def can_propose(self) -> bool:
        """Whether this node leads, its epoch has started in the log, and no batch is in flight."""
        role = self.role
        return isinstance(role, Leader) and role.in_flight is None and not self.is_failed

    @property
    def other_voters(self) -> tuple[VoterState, ...]:
        """The leader's view of the other voters; empty if this node does not lead."""
        voters = self.role.voters if isinstance(self.role, Leader) else ()
        return tuple(map(self._state_of, voters))

    @property
    def observers(self) -> tuple[VoterState, ...]:
        """The leader's view of the observers; empty if this node does not lead."""
        observers = self.role.observers if isinstance(self.role, Leader) else ()
        return tuple(map(self._state_of, observers))

    def _state_of(self, known: Progress) -> VoterState:
        caught_up_ms = known.caught_up_ms
        return VoterState(
            *known.replica,
            known.synced_end,
            max(0, self.now_ms - known.fetched_ms),
            max(0, self.now_ms - caught_up_ms) if caught_up_ms >= 0 else None,
        )

    @property
    def voter_endpoints(self) -> Mapping[int, Sequence[VoterEndpoint]]:
        """Endpoints of voters in the log, by node id."""
        voters = self.log.voter_set.voters
        return {voter.key.node_id: voter.endpoints for voter in voters if voter.endpoints}

    @property
    def state(self) -> str:
        """Kafka's name of the state, as in its metrics."""
        if not self.is_voter and not isinstance(self.role, Leader | Resigned):
            return "Observer"
        is_voted = isinstance(self.role, Unattached) and self.election.voted is not None
        return "Voted" if is_voted else type(self.role).__name__

    @property
    def deadline_ms(self) -> int:
        """When the next `Tick` is due at the latest; `NEVER` if no timer is set."""
        if self.is_failed:
            return NEVER
        times = [until for _, until in self.backoffs if until > self.now_ms]
        return min((role_deadline(Transition(*self)), *times))

    def at(self, now_ms: int) -> "Replica":
        """Return the value at a later time, for an event that carries none; no timer expires."""
        return self._replace(now_ms=max(self.now_ms, now_ms))

    def handle(self, event: ReplicaEvent) -> tuple["Replica", list[ReplicaOutput]]:
        """Return the value after an event, and its outputs.

        Raises:
            AssertionError: The event does not fit the state; nothing changed.
        """
        if self.is_failed:
            return self, []
        transition = Transition(*self)
        before = transition.leader_id, transition.election.epoch
        _take(transition, event)
        return _finished(transition, before)


def begin(
    key: ReplicaKey,
    voters: tuple[ReplicaKey, ...],
    election: ElectionState,
    log: LogState,
    *,
    now_ms: int,
    seed: int,
    config: QuorumConfig = DEFAULTS,
    bootstrap: tuple[int, ...] = (),
    own: Voter | None = None,
) -> tuple[Replica, list[ReplicaOutput]]:
    """Return a replica at the start of its node, and the first outputs.

    Args:
        voters: Static voters; used if the log contains no voter set.
        election: From quorum-state; ``ElectionState(0)`` if there is none.
        log: `LogState.loaded` of a log whose content is on disk.
        seed: Must differ between nodes and between their starts.
        bootstrap: Nodes, in addition to the voters, from which an observer can get the leader.
        own: The voter set's entry for this node, if it can be a voter in a dynamic set.

    Raises:
        ValueError: No voters and no bootstrap nodes, too many static voters, or two voters with the
            same node id.
    """
    if not log.voter_set.voters:
        log = log._replace(voter_sets=(VoterSet(0, tuple(map(Voter, voters))),))
        _check_static(voters, bootstrap)
    voters = log.voter_set.keys
    if len({voter.node_id for voter in voters}) < len(voters):
        raise ValueError("two voters have one node id")
    assert not log.writes, "the log is as the disk has it"
    blank = Unattached(NEVER)
    committed = log.newest.offset if log.newest is not None else 0
    begun = Replica(key, config, seed, now_ms, election, blank, log, committed)
    transition = Transition(*begun._replace(bootstrap=bootstrap, own=own))
    take_own_name(transition)
    before = transition.leader_id, election.epoch
    _start(transition)
    return _finished(transition, before)


def _check_static(voters: tuple[ReplicaKey, ...], bootstrap: tuple[int, ...]) -> None:
    if len(voters) > VOTERS_MAX or not (voters or bootstrap):
        raise ValueError(f"a quorum has 1 to {VOTERS_MAX} voters, not {len(voters)}")


def _start(transition: Transition) -> None:
    """Enter the state after a restart. A leader or candidate does not lead in the same epoch again.

    The last leader starts an election immediately: voters that have another leader refuse, and
    those that start at the same time, as after a full stop, would otherwise wait for this node.
    """
    election, own = transition.election, transition.key.node_id
    if transition.log.last_epoch > election.epoch:
        to_unattached(transition, transition.log.last_epoch)
    elif election.leader_id == own and transition.stands:
        transition.role = Resigned(transition.election_deadline(), frozenset(), ())
    elif election.leader_id not in (-1, own):
        to_follower(transition, election.leader_id, election.epoch)
    else:
        to_unattached(transition, election.epoch)
    led_last = isinstance(transition.role, Resigned)
    if transition.is_voter and (
        len(transition.voters) == 1 or led_last or _is_first_of_new_quorum(transition)
    ):
        to_prospective(transition)


def _is_first_of_new_quorum(transition: Transition) -> bool:
    """Return whether this is the lowest-id voter of a quorum that has never had a leader.

    Only this voter starts an election immediately, to avoid split votes.
    """
    is_new = transition.election == ElectionState(0) and transition.log.end == 0
    return is_new and transition.key.node_id == min(voter.node_id for voter in transition.voters)


def _finished(
    transition: Transition, before: tuple[int, int]
) -> tuple[Replica, list[ReplicaOutput]]:
    take_own_name(transition)
    if not transition.is_failed:
        act(transition)
    after = transition.leader_id, transition.election.epoch
    if after != before:
        transition.outputs.append(LeaderChanged(*after))
    log, committed = transition.log, transition.high_watermark
    assert log.start <= committed <= log.synced_end <= log.end, f"high watermark {committed}: {log}"
    return (
        Replica(
            transition.key,
            transition.config,
            transition.seed,
            transition.now_ms,
            transition.election,
            transition.role,
            transition.log,
            transition.high_watermark,
            transition.persisting,
            transition.held,
            transition.correlation,
            transition.sent,
            transition.backoffs,
            transition.installing,
            transition.is_failed,
            transition.bootstrap,
            transition.own,
            transition.stalls,
        ),
        transition.outputs,
    )


# Events.


def _take(transition: Transition, event: ReplicaEvent) -> None:
    match event:
        case Tick(now_ms):
            transition.now_ms, transition.came_ms = max(transition.now_ms, now_ms), now_ms
            expire(transition)
        case Request(now_ms, number, body):
            transition.now_ms, transition.came_ms = max(transition.now_ms, now_ms), now_ms
            _on_request(transition, number, as_known(transition, body))
        case Replied():
            transition.now_ms = max(transition.now_ms, event.now_ms)
            _on_replied(transition, event)
        case Persisted(error_code):
            _on_persisted(transition, error_code)
        case Appended(error_code, offset):
            _on_written(transition, error_code, offset)
        case Truncated(error_code):
            _on_written(transition, error_code, TRUNCATION)
        case Proposal():
            on_proposal(transition, event)
        case SnapshotInstalled(snapshot_id, voters):
            assert snapshot_id is None or transition.installing, "a snapshot is installed once"
            on_installed(transition, snapshot_id, voters)
        case SnapshotTaken(snapshot_id):
            assert snapshot_id.offset <= transition.high_watermark, (
                "snapshots contain committed records only"
            )
            transition.log = transition.log.with_snapshot(snapshot_id)
        case LogCleaned(snapshot_id):
            assert snapshot_id.offset <= transition.high_watermark, (
                "snapshots contain committed records only"
            )
            transition.log = transition.log.cleaned(snapshot_id)
            transition.withhold_records(snapshot_id.offset)
        case Resign():
            if isinstance(transition.role, Leader):
                to_resigned(transition)
        case _:
            assert_never(event)


def _on_request(transition: Transition, number: int, body: Body) -> None:
    match body:
        case Vote():
            on_vote(transition, number, body)
        case BeginQuorumEpoch():
            on_begin_quorum_epoch(transition, number, body)
        case EndQuorumEpoch():
            on_end_quorum_epoch(transition, number, body)
        case Fetch():
            on_fetch(transition, number, body)
        case FetchSnapshot():
            on_fetch_snapshot(transition, number, body)
        case AddVoter() | RemoveVoter() | UpdateVoter():
            on_voter_request(transition, number, body)
        case AskVersions():
            raise AssertionError("a node answers ApiVersions by itself")
        case _:
            assert_never(body)


def _on_replied(transition: Transition, event: Replied) -> None:
    sent = transition.take_sent(event.correlation)
    if sent is None:
        return
    node_id, asked = sent
    match asked, event.reply:
        case AskVersions() as body, None:
            on_versions_reply(transition, body, None)
        case _, None:
            transition.back_off(node_id)
            if event.is_gone:
                on_gone(transition, node_id)
        case Vote(), VoteReply() as reply:
            on_vote_reply(transition, node_id, asked, reply)
        case ((BeginQuorumEpoch() | EndQuorumEpoch()), EpochReply() as reply):
            on_epoch_reply(transition, node_id, asked, reply)
        case Fetch(), FetchReply() as reply:
            on_fetch_reply(transition, node_id, reply)
        case FetchSnapshot(), SnapshotReply() as reply:
            on_snapshot_reply(transition, node_id, reply)
        case AskVersions() as body, VersionsReply() as reply:
            on_versions_reply(transition, body, reply)
        case (AddVoter() | RemoveVoter() | UpdateVoter()) as body, VoterReply() as reply:
            on_voter_reply(transition, body, reply)
        case _:
            raise AssertionError("a response is of its request's kind")


def _on_persisted(transition: Transition, error_code: int) -> None:
    if error_code:
        _fail(transition, error_code)
        return
    transition.persisted()
    if not transition.persisting:
        grant_time(transition)
        count_own_vote(transition)


def _on_written(transition: Transition, error_code: int, base_offset: int) -> None:
    if error_code:
        _fail(transition, error_code)
        return
    transition.log = transition.log.written(base_offset)
    if isinstance(transition.role, Leader):
        note_appended(transition)
        advance(transition)
    elif isinstance(transition.role, Follower):
        grant_time(transition)
        follow_high_watermark(transition)


def _fail(transition: Transition, error_code: int) -> None:
    role = transition.role
    if isinstance(role, Leader) and role.in_flight is not None and role.in_flight.records:
        transition.outputs.append(InDoubt())
    transition.fail(error_code)
