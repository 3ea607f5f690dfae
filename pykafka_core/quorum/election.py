"""Votes, and the start and end of epochs: responses to requests, and handling of responses."""

from pykafka_core.errors import (
    FencedLeaderEpochError,
    InconsistentVoterSetError,
    InvalidRequestError,
    InvalidVoterKeyError,
)
from pykafka_core.quorum.events import Respond
from pykafka_core.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from pykafka_core.quorum.rpc import (
    BeginQuorumEpoch,
    EndQuorumEpoch,
    EpochReply,
    Vote,
    VoteReply,
)
from pykafka_core.quorum.transitions import (
    count_pre_votes,
    count_votes,
    election_backoff,
    hear_of,
    to_follower,
    to_unattached,
)
from pykafka_core.quorum.turn import Turn
from pykafka_core.quorum.values import OffsetAndEpoch, ReplicaKey

# Requests.


def on_vote(turn: Turn, number: int, vote: Vote) -> None:
    """Grant or refuse a vote, or respond with an error."""
    error = _vote_error(turn, vote)
    if (
        error
        and turn.is_voter
        and is_removed(turn, vote.candidate)
        and vote.epoch > turn.election.epoch
    ):
        # A removed replica would not follow a leader of an earlier epoch, and would not learn of
        # its removal in any other way.
        to_unattached(turn, vote.epoch)
    granted = False
    if not error:
        if vote.epoch > turn.election.epoch:
            to_unattached(turn, vote.epoch)
        if vote.pre_vote:
            granted = would_vote(turn, vote)
        elif may_vote(turn, vote):
            granted = True
            _vote_for(turn, vote)
    reply = VoteReply(error, turn.leader_id, turn.election.epoch, granted)
    turn.emit(Respond(number, reply))


def _vote_error(turn: Turn, vote: Vote) -> int:
    if vote.candidate.node_id == turn.key.node_id:
        return InconsistentVoterSetError.code
    if vote.candidate not in turn.voters and not may_be_voter(turn):
        return InconsistentVoterSetError.code
    is_voter = turn.is_voter or (turn.own is not None and has_open_set(turn))
    if vote.voter != turn.key or not is_voter:
        return InvalidVoterKeyError.code
    if vote.epoch < turn.election.epoch:
        return FencedLeaderEpochError.code
    last_epoch_max = vote.epoch if vote.pre_vote else vote.epoch - 1
    if vote.last.offset < 0 or not 0 <= vote.last.epoch <= last_epoch_max:
        return InvalidRequestError.code
    return 0


def is_up_to_date(turn: Turn, last: OffsetAndEpoch) -> bool:
    """Return whether another replica's log has at least the records of this one."""
    return last.recency >= turn.log.last.recency


def may_vote(turn: Turn, vote: Vote) -> bool:
    """Return whether to vote for a candidate of the current epoch."""
    election = turn.election
    if not isinstance(turn.role, Unattached | Prospective):
        return False
    if election.voted is not None:
        return election.voted == vote.candidate
    return election.leader_id == -1 and is_up_to_date(turn, vote.last)


def hears_leader(turn: Turn) -> bool:
    """Return whether there is an active leader, as far as this replica knows."""
    match turn.role:
        case Follower(has_fetched=True):
            return True
        case Leader(epoch_start=start):
            return turn.high_watermark > start
    return False


def has_open_set(turn: Turn) -> bool:
    """Return whether records that this replica lacks could change the voter set (KIP-853)."""
    return turn.log.voter_set.kraft_version >= 1


def may_be_voter(turn: Turn) -> bool:
    """Return whether to accept a replica as voter or leader that is not in this voter set.

    Not while there is an active leader: otherwise any client of the listener could end its epoch.
    """
    return has_open_set(turn) and not hears_leader(turn)


def is_removed(turn: Turn, replica: ReplicaKey) -> bool:
    """Return whether a replica was removed from the voter set, according to this log."""
    was_voter = any(replica in voter_set.keys for voter_set in turn.log.voter_sets)
    return was_voter and replica not in turn.voters


def would_vote(turn: Turn, vote: Vote) -> bool:
    """Return whether to grant a pre-vote: the log is up to date, and there is no active leader.

    No pre-vote is granted while a snapshot is being installed, because the log is about to grow.
    """
    return not turn.installing and not hears_leader(turn) and is_up_to_date(turn, vote.last)


def _vote_for(turn: Turn, vote: Vote) -> None:
    if turn.election.voted is None:
        turn.elect(turn.election._replace(voted=vote.candidate))
        to_unattached(turn, turn.election.epoch)


def on_begin_quorum_epoch(turn: Turn, number: int, begin: BeginQuorumEpoch) -> None:
    """Handle the announcement of a leader."""
    error = _epoch_error(turn, begin.leader_id, begin.epoch)
    if not error and begin.voter != turn.key:
        error = InvalidVoterKeyError.code
    if not error and not leaves_leader(turn, begin):
        _follow(turn, begin.leader_id, begin.epoch)
    _respond_to_epoch(turn, number, error)


def on_end_quorum_epoch(turn: Turn, number: int, end: EndQuorumEpoch) -> None:
    """Handle a leader's resignation: its followers start elections, one after another."""
    error = _epoch_error(turn, end.leader_id, end.epoch)
    if not error:
        _follow(turn, end.leader_id, end.epoch)
        role = turn.role
        if isinstance(role, Follower) and turn.stands:
            wait = _turn_to_stand(turn, end)
            _stand_at(turn, role, turn.now_ms + wait)
    _respond_to_epoch(turn, number, error)


def on_gone(turn: Turn, node_id: int) -> None:
    """Handle the end of a leader's process: followers start elections in turn, observers search."""
    role = turn.role
    if not isinstance(role, Follower) or role.leader_id != node_id or turn.installing:
        return
    if turn.stands:
        others = [voter for voter in turn.voters if voter.node_id != node_id]
        place = others.index(turn.key) if turn.key in others else len(others)
        wait = election_backoff(turn, place) if place else 0
        _stand_at(turn, role, min(role.deadline_ms, turn.now_ms + wait))
    else:
        to_unattached(turn, turn.election.epoch)
        turn.back_off(node_id)


def _stand_at(turn: Turn, role: Follower, deadline_ms: int) -> None:
    turn.role = role._replace(deadline_ms=deadline_ms, has_fetched=False, is_in_turn=True)


def _turn_to_stand(turn: Turn, end: EndQuorumEpoch) -> int:
    preferred = end.preferred
    place = preferred.index(turn.key) if turn.key in preferred else len(preferred)
    return election_backoff(turn, place) if place else 0


def _epoch_error(turn: Turn, leader_id: int, epoch: int) -> int:
    own, known = turn.key.node_id, turn.election
    is_known = leader_id == known.leader_id or any(
        leader_id == voter.node_id for voter in turn.voters
    )
    if leader_id in (-1, own) or not (is_known or may_be_voter(turn)):
        return InconsistentVoterSetError.code
    if epoch < known.epoch:
        return FencedLeaderEpochError.code
    if epoch == known.epoch and known.leader_id not in (-1, leader_id):
        return InvalidRequestError.code
    return 0


def _follow(turn: Turn, leader_id: int, epoch: int) -> None:
    if epoch > turn.election.epoch or not isinstance(turn.role, Follower):
        to_follower(turn, leader_id, epoch)


def leaves_leader(turn: Turn, begin: BeginQuorumEpoch) -> bool:
    """Return whether this replica requests pre-votes because a leader answers no Fetch.

    It continues, as in Kafka: a leader whose disk hangs can still announce itself.
    """
    known = turn.election
    is_known = (begin.leader_id, begin.epoch) == (known.leader_id, known.epoch)
    return is_known and isinstance(turn.role, Prospective)


def _respond_to_epoch(turn: Turn, number: int, error: int) -> None:
    reply = EpochReply(error, turn.leader_id, turn.election.epoch)
    turn.emit(Respond(number, reply))


# Replies.


def on_vote_reply(turn: Turn, node_id: int, asked: Vote, reply: VoteReply) -> None:
    """Count a vote if this replica still requests votes. Errors count as refusals."""
    hear_of(turn, reply.leader_id, reply.epoch)
    role = turn.role
    if asked.epoch != turn.election.epoch or not isinstance(role, _ASKING[asked.pre_vote]):
        return
    assert isinstance(role, Prospective | Candidate)
    turn.role = (
        role._replace(granted=role.granted | {node_id})
        if reply.granted and not reply.error_code
        else role._replace(refused=role.refused | {node_id})
    )
    if isinstance(role, Prospective):
        count_pre_votes(turn)
    else:
        count_votes(turn)


_ASKING: dict[bool, type[Role]] = {True: Prospective, False: Candidate}
"""State that requests votes, by whether they are pre-votes."""


def on_epoch_reply(
    turn: Turn, node_id: int, asked: BeginQuorumEpoch | EndQuorumEpoch, reply: EpochReply
) -> None:
    """Record that a voter received the message; an error means that it is another replica now."""
    hear_of(turn, reply.leader_id, reply.epoch)
    role = turn.role
    if asked.epoch != turn.election.epoch:
        return
    if isinstance(role, Leader):
        turn.role = role._replace(
            voters=tuple(
                voter._replace(heard_ms=turn.now_ms) if voter.replica.node_id == node_id else voter
                for voter in role.voters
            )
        )
    elif isinstance(role, Resigned):
        turn.role = role._replace(unaware=role.unaware - {node_id})
