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
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.transitions import (
    count_pre_votes,
    count_votes,
    election_backoff,
    hear_of,
    to_follower,
    to_unattached,
)
from pykafka_core.quorum.values import OffsetAndEpoch, ReplicaKey

# Requests.


def on_vote(transition: Transition, number: int, vote: Vote) -> None:
    """Grant or refuse a vote, or respond with an error."""
    error = _vote_error(transition, vote)
    if (
        error
        and transition.is_voter
        and is_removed(transition, vote.candidate)
        and vote.epoch > transition.election.epoch
    ):
        # A removed replica would not follow a leader of an earlier epoch, and would not learn of
        # its removal in any other way.
        to_unattached(transition, vote.epoch)
    granted = False
    if not error:
        if vote.epoch > transition.election.epoch:
            to_unattached(transition, vote.epoch)
        if vote.pre_vote:
            granted = would_vote(transition, vote)
        elif may_vote(transition, vote):
            granted = True
            _vote_for(transition, vote)
    reply = VoteReply(error, transition.leader_id, transition.election.epoch, granted)
    transition.emit(Respond(number, reply))


def _vote_error(transition: Transition, vote: Vote) -> int:
    if vote.candidate.node_id == transition.key.node_id:
        return InconsistentVoterSetError.code
    if vote.candidate not in transition.voters and not may_be_voter(transition):
        return InconsistentVoterSetError.code
    is_voter = transition.is_voter or (transition.own is not None and has_open_set(transition))
    if vote.voter != transition.key or not is_voter:
        return InvalidVoterKeyError.code
    if vote.epoch < transition.election.epoch:
        return FencedLeaderEpochError.code
    last_epoch_max = vote.epoch if vote.pre_vote else vote.epoch - 1
    if vote.last.offset < 0 or not 0 <= vote.last.epoch <= last_epoch_max:
        return InvalidRequestError.code
    return 0


def is_up_to_date(transition: Transition, last: OffsetAndEpoch) -> bool:
    """Return whether another replica's log has at least the records of this one."""
    return last.recency >= transition.log.last.recency


def may_vote(transition: Transition, vote: Vote) -> bool:
    """Return whether to vote for a candidate of the current epoch."""
    election = transition.election
    if not isinstance(transition.role, Unattached | Prospective):
        return False
    if election.voted is not None:
        return election.voted == vote.candidate
    return election.leader_id == -1 and is_up_to_date(transition, vote.last)


def hears_leader(transition: Transition) -> bool:
    """Return whether there is an active leader, as far as this replica knows."""
    match transition.role:
        case Follower(has_fetched=True):
            return True
        case Leader(epoch_start=start):
            return transition.high_watermark > start
    return False


def has_open_set(transition: Transition) -> bool:
    """Return whether records that this replica lacks could change the voter set (KIP-853)."""
    return transition.log.voter_set.kraft_version >= 1


def may_be_voter(transition: Transition) -> bool:
    """Return whether to accept a replica as voter or leader that is not in this voter set.

    Not while there is an active leader: otherwise any client of the listener could end its epoch.
    """
    return has_open_set(transition) and not hears_leader(transition)


def is_removed(transition: Transition, replica: ReplicaKey) -> bool:
    """Return whether a replica was removed from the voter set, according to this log."""
    was_voter = any(replica in voter_set.keys for voter_set in transition.log.voter_sets)
    return was_voter and replica not in transition.voters


def would_vote(transition: Transition, vote: Vote) -> bool:
    """Return whether to grant a pre-vote: the log is up to date, and there is no active leader.

    No pre-vote is granted while a snapshot is being installed, because the log is about to grow.
    """
    return (
        not transition.installing
        and not hears_leader(transition)
        and is_up_to_date(transition, vote.last)
    )


def _vote_for(transition: Transition, vote: Vote) -> None:
    if transition.election.voted is None:
        transition.elect(transition.election._replace(voted=vote.candidate))
        to_unattached(transition, transition.election.epoch)


def on_begin_quorum_epoch(transition: Transition, number: int, begin: BeginQuorumEpoch) -> None:
    """Handle the announcement of a leader."""
    error = _epoch_error(transition, begin.leader_id, begin.epoch)
    if not error and begin.voter != transition.key:
        error = InvalidVoterKeyError.code
    if not error and not leaves_leader(transition, begin):
        _follow(transition, begin.leader_id, begin.epoch)
    _respond_to_epoch(transition, number, error)


def on_end_quorum_epoch(transition: Transition, number: int, end: EndQuorumEpoch) -> None:
    """Handle a leader's resignation: its followers start elections, one after another."""
    error = _epoch_error(transition, end.leader_id, end.epoch)
    if not error:
        _follow(transition, end.leader_id, end.epoch)
        role = transition.role
        if isinstance(role, Follower) and transition.stands:
            wait = _turn_to_stand(transition, end)
            _stand_at(transition, role, transition.now_ms + wait)
    _respond_to_epoch(transition, number, error)


def on_gone(transition: Transition, node_id: int) -> None:
    """Handle the end of a leader's process: followers start elections in turn, observers search."""
    role = transition.role
    if not isinstance(role, Follower) or role.leader_id != node_id or transition.installing:
        return
    if transition.stands:
        others = [voter for voter in transition.voters if voter.node_id != node_id]
        place = others.index(transition.key) if transition.key in others else len(others)
        wait = election_backoff(transition, place) if place else 0
        _stand_at(transition, role, min(role.deadline_ms, transition.now_ms + wait))
    else:
        to_unattached(transition, transition.election.epoch)
        transition.back_off(node_id)


def _stand_at(transition: Transition, role: Follower, deadline_ms: int) -> None:
    transition.role = role._replace(deadline_ms=deadline_ms, has_fetched=False, is_in_turn=True)


def _turn_to_stand(transition: Transition, end: EndQuorumEpoch) -> int:
    preferred = end.preferred
    place = preferred.index(transition.key) if transition.key in preferred else len(preferred)
    return election_backoff(transition, place) if place else 0


def _epoch_error(transition: Transition, leader_id: int, epoch: int) -> int:
    own, known = transition.key.node_id, transition.election
    is_known = leader_id == known.leader_id or any(
        leader_id == voter.node_id for voter in transition.voters
    )
    if leader_id in (-1, own) or not (is_known or may_be_voter(transition)):
        return InconsistentVoterSetError.code
    if epoch < known.epoch:
        return FencedLeaderEpochError.code
    if epoch == known.epoch and known.leader_id not in (-1, leader_id):
        return InvalidRequestError.code
    return 0


def _follow(transition: Transition, leader_id: int, epoch: int) -> None:
    if epoch > transition.election.epoch or not isinstance(transition.role, Follower):
        to_follower(transition, leader_id, epoch)


def leaves_leader(transition: Transition, begin: BeginQuorumEpoch) -> bool:
    """Return whether this replica requests pre-votes because a leader answers no Fetch.

    It continues, as in Kafka: a leader whose disk hangs can still announce itself.
    """
    known = transition.election
    is_known = (begin.leader_id, begin.epoch) == (known.leader_id, known.epoch)
    return is_known and isinstance(transition.role, Prospective)


def _respond_to_epoch(transition: Transition, number: int, error: int) -> None:
    reply = EpochReply(error, transition.leader_id, transition.election.epoch)
    transition.emit(Respond(number, reply))


# Replies.


def on_vote_reply(transition: Transition, node_id: int, asked: Vote, reply: VoteReply) -> None:
    """Count a vote if this replica still requests votes. Errors count as refusals."""
    hear_of(transition, reply.leader_id, reply.epoch)
    role = transition.role
    if asked.epoch != transition.election.epoch or not isinstance(role, _ASKING[asked.pre_vote]):
        return
    assert isinstance(role, Prospective | Candidate)
    transition.role = (
        role._replace(granted=role.granted | {node_id})
        if reply.granted and not reply.error_code
        else role._replace(refused=role.refused | {node_id})
    )
    if isinstance(role, Prospective):
        count_pre_votes(transition)
    else:
        count_votes(transition)


_ASKING: dict[bool, type[Role]] = {True: Prospective, False: Candidate}
"""State that requests votes, by whether they are pre-votes."""


def on_epoch_reply(
    transition: Transition,
    node_id: int,
    asked: BeginQuorumEpoch | EndQuorumEpoch,
    reply: EpochReply,
) -> None:
    """Record that a voter received the message; an error means that it is another replica now."""
    hear_of(transition, reply.leader_id, reply.epoch)
    role = transition.role
    if asked.epoch != transition.election.epoch:
        return
    if isinstance(role, Leader):
        transition.role = role._replace(
            voters=tuple(
                voter._replace(heard_ms=transition.now_ms)
                if voter.replica.node_id == node_id
                else voter
                for voter in role.voters
            )
        )
    elif isinstance(role, Resigned):
        transition.role = role._replace(unaware=role.unaware - {node_id})
