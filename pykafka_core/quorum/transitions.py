"""Transitions between the states of a replica."""

from collections.abc import Sequence

from pykafka_core.errors import NotLeaderOrFollowerError
from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.events import InDoubt, Respond
from pykafka_core.quorum.log.records import LEADER_CHANGE, LEADER_CHANGE_KEY, leader_change
from pykafka_core.quorum.log.voters import (
    KRAFT_VERSION_KEY,
    VOTERS_KEY,
    change_of,
    encode_kraft_version,
    encode_voters,
    updated,
)
from pykafka_core.quorum.quorum import Append
from pykafka_core.quorum.roles import (
    NEVER,
    Candidate,
    Follower,
    InFlight,
    Leader,
    Progress,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from pykafka_core.quorum.rpc import FetchReply, VoterReply
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.values import Batch, ElectionState

ELECTION_BACKOFF_MS = 100
"""Unit of pauses between elections, which double (``KafkaRaftClient.RETRY_BACKOFF_BASE_MS``)."""
_DOUBLINGS_MAX = 10


def enter(transition: Transition, role: Role) -> None:
    """Enter a state. If it led, its proposal is in doubt and waiting requests fail."""
    left = transition.role
    transition.role = role
    transition.forget_requests()
    if isinstance(left, Leader):
        if left.in_flight is not None and left.in_flight.records:
            transition.outputs.append(InDoubt())
        for waiting in left.waiting:
            refuse_fetch(transition, waiting.number, NotLeaderOrFollowerError.code)
        if left.change is not None and left.change.number is not None:
            error = NotLeaderOrFollowerError
            reply = VoterReply(
                error.code, transition.leader_id, transition.election.epoch, error.text
            )
            transition.emit(Respond(left.change.number, reply))


def refuse_fetch(transition: Transition, number: int, error_code: int) -> None:
    """Respond without records, with the leader that this replica knows."""
    epoch = transition.election.epoch
    transition.emit(Respond(number, FetchReply(error_code, transition.leader_id, epoch)))


def to_unattached(transition: Transition, epoch: int) -> None:
    """Enter Unattached in an epoch, the current one or a later one."""
    if epoch > transition.election.epoch:
        transition.elect(ElectionState(epoch))
    deadline = transition.election_deadline() if transition.stands else NEVER
    enter(transition, Unattached(deadline))


def to_follower(transition: Transition, leader_id: int, epoch: int) -> None:
    """Follow another node, in the current epoch or a later one."""
    before = transition.election
    voted = before.voted if epoch == before.epoch else None
    transition.elect(ElectionState(epoch, leader_id, voted))
    enter(transition, Follower(leader_id, transition.now_ms + transition.config.fetch_timeout_ms))


def to_prospective(transition: Transition, elections_lost: int = 0) -> None:
    """Request pre-votes; its own is the first."""
    granted = frozenset((transition.key.node_id,))
    enter(
        transition,
        Prospective(transition.election_deadline(), granted, frozenset(), elections_lost),
    )
    count_pre_votes(transition)


def to_candidate(transition: Transition, elections_lost: int) -> None:
    """Request votes in the next epoch; its own vote is being written to disk."""
    transition.elect(ElectionState(transition.election.epoch + 1, voted=transition.key))
    deadline = transition.election_deadline()
    enter(transition, Candidate(deadline, frozenset(), frozenset(), elections_lost))


def to_leader(transition: Transition, granted: frozenset[int]) -> None:
    """Become the leader: start the epoch in the log."""
    epoch, first = transition.election.epoch, transition.log.end
    transition.elect(transition.election._replace(leader_id=transition.key.node_id))
    voters = tuple(Progress(other, -1, transition.now_ms, -1) for other in transition.others)
    enter(transition, Leader(first, voters, granted, None))
    value = leader_change(
        transition.key.node_id,
        (voter.node_id for voter in transition.voters),
        (voter.node_id for voter in transition.voters if voter.node_id in granted),
    )
    more = _first_voters(transition)
    keys = LEADER_CHANGE_KEY, *(key for key, _ in more)
    append(
        transition, Append(epoch, [value, *(value for _, value in more)], keys, LEADER_CHANGE), ()
    )


def _first_voters(transition: Transition) -> list[tuple[bytes, bytes]]:
    """Return control records for the start of an epoch if the log's voter set is not up to date.

    The set that the node was formatted with is written for replicas that were formatted without it,
    and this node's endpoints are updated. The set of voting replicas does not change, so no earlier
    commit is required.
    """
    own, known = transition.own, transition.log.voter_set
    if known.kraft_version < 1:
        return []
    voters = known.voters if own is None else updated(known.voters, own)
    if known.end and voters == known.voters:
        return []
    version = KRAFT_VERSION_KEY, encode_kraft_version(known.kraft_version)
    records = [] if known.end else [version]
    return [*records, (VOTERS_KEY, encode_voters(voters))]


def append(transition: Transition, command: Append, records: Sequence[Message]) -> None:
    """Append a leader's batch. A voter set in it is effective immediately."""
    leader, first = transition.role, transition.log.end
    assert isinstance(leader, Leader), "leaders append"
    assert leader.in_flight is None, "one batch is in flight at a time"
    transition.role = leader._replace(
        in_flight=InFlight(records, first, first + len(command.values) - 1)
    )
    put_in_log(transition, command)


def put_in_log(transition: Transition, command: Append) -> None:
    """Append a leader's batch, which is committed together with the next one in flight."""
    leader = transition.role
    assert isinstance(leader, Leader), "leaders append"
    transition.role = leader._replace(
        appending_since_ms=min(leader.appending_since_ms, transition.now_ms)
    )
    change = None if command.keys is None else change_of(command.records)
    batch = Batch(transition.log.end, command.leader_epoch, len(command.values), b"", change)
    transition.log = transition.log.appending((batch,))
    if change is not None:
        _regroup(transition)
    transition.emit(command)


def _regroup(transition: Transition) -> None:
    """Assign a leader's voters and observers by the effective voter set."""
    leader, others = transition.role, transition.others
    assert isinstance(leader, Leader), "leaders append"
    known = {one.replica: one for one in (*leader.voters, *leader.observers)}
    transition.role = leader._replace(
        voters=tuple(known.get(one) or Progress(one, -1, transition.now_ms, -1) for one in others),
        observers=tuple(one for key, one in known.items() if key not in others),
    )


def to_resigned(transition: Transition) -> None:
    """Resign; voters with the longest logs should start elections first."""
    assert isinstance(transition.role, Leader)
    by_end = sorted(transition.role.voters, key=lambda voter: -voter.synced_end)
    preferred = tuple(voter.replica for voter in by_end)
    unaware = frozenset(replica.node_id for replica in preferred)
    enter(transition, Resigned(transition.election_deadline(), unaware, preferred))


def hear_of(transition: Transition, leader_id: int, epoch: int) -> None:
    """Handle the epoch that another replica reported, and its leader or -1."""
    names_other = leader_id not in (-1, transition.key.node_id) and _may_lead(transition, leader_id)
    now = transition.election
    if epoch > now.epoch:
        if names_other:
            to_follower(transition, leader_id, epoch)
        else:
            to_unattached(transition, epoch)
    elif epoch == now.epoch and names_other:
        is_news = now.leader_id == -1
        if is_news or (isinstance(transition.role, Unattached) and now.leader_id == leader_id):
            to_follower(transition, leader_id, epoch)


def _may_lead(transition: Transition, node_id: int) -> bool:
    """Return whether a node may lead: it is a voter, or could be one by records not yet fetched."""
    known = transition.log.voter_set
    is_static = known.kraft_version < 1 and bool(known.voters)
    return not is_static or any(node_id == voter.node_id for voter in transition.voters)


def election_backoff(transition: Transition, elections_lost: int) -> int:
    """Return a random pause that grows with each lost election."""
    units = 1 + transition.drawn(2 ** min(elections_lost, _DOUBLINGS_MAX))
    return min(ELECTION_BACKOFF_MS * units, transition.config.election_backoff_ms_max)


def grant_time(transition: Transition) -> None:
    """Leave time for a response after a wait for the disk: no request could be sent during it.

    The turn of a follower to stand for election needs no response, so it stays.
    """
    role = transition.role
    if isinstance(role, Follower) and role.is_in_turn:
        return
    if isinstance(role, Unattached | Candidate | Follower):
        deadline_ms = max(role.deadline_ms, transition.election_deadline())
        transition.role = role._replace(deadline_ms=deadline_ms)


# Counting votes.


def votes_of(transition: Transition, granted: frozenset[int]) -> int:
    """Return the number of votes; a vote of this node counts only if this replica is a voter."""
    own = transition.key
    return sum(
        voter.node_id in granted and (voter == own or voter.node_id != own.node_id)
        for voter in transition.voters
    )


def count_pre_votes(transition: Transition) -> None:
    """Become a candidate with a majority of pre-votes; stop if a majority is impossible."""
    role = transition.role
    assert isinstance(role, Prospective)
    if votes_of(transition, role.granted) >= transition.majority:
        to_candidate(transition, role.elections_lost)
    elif len(role.refused) > len(transition.voters) - transition.majority:
        lose_pre_vote(transition)


def lose_pre_vote(transition: Transition) -> None:
    """Return to the leader of this epoch, if there is one."""
    leader_id = transition.election.leader_id
    if leader_id not in (-1, transition.key.node_id):
        to_follower(transition, leader_id, transition.election.epoch)
    else:
        to_unattached(transition, transition.election.epoch)


def count_votes(transition: Transition) -> None:
    """Become the leader with a majority of votes; pause if a majority is impossible."""
    role = transition.role
    assert isinstance(role, Candidate)
    if votes_of(transition, role.granted) >= transition.majority:
        to_leader(transition, role.granted)
    elif (
        len(role.refused) > len(transition.voters) - transition.majority and not role.is_backing_off
    ):
        lose_election(transition)


def lose_election(transition: Transition) -> None:
    """Pause, so that another candidate can win."""
    role = transition.role
    assert isinstance(role, Candidate)
    lost = role.elections_lost + 1
    until = transition.now_ms + election_backoff(transition, lost)
    transition.role = role._replace(deadline_ms=until, elections_lost=lost, is_backing_off=True)


def count_own_vote(transition: Transition) -> None:
    """Count a candidate's own vote once quorum-state is on disk."""
    role, own = transition.role, transition.key.node_id
    if isinstance(role, Candidate) and own not in role.granted:
        transition.role = role._replace(granted=role.granted | {own})
        count_votes(transition)
