"""Actions of each state without an event: the requests it sends, and its timeouts."""

from typing import assert_never

from pykafka_core.quorum.follower import fetch, fetch_part
from pykafka_core.quorum.leader import note_stall, resigns_at, respond_to_waiting
from pykafka_core.quorum.roles import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from pykafka_core.quorum.rpc import BeginQuorumEpoch, EndQuorumEpoch, Vote
from pykafka_core.quorum.transitions import (
    lose_election,
    lose_pre_vote,
    to_prospective,
    to_resigned,
    to_unattached,
)
from pykafka_core.quorum.turn import Turn
from pykafka_core.quorum.voter_changes import ask_to_join, expire_change, go_on_with_change


def role_deadline(turn: Turn) -> int:
    """Return the time of the state's next timeout; `NEVER` if it has none."""
    role = turn.role
    match role:
        case Leader():
            times = [waiting.deadline_ms for waiting in role.waiting]
            half = turn.config.fetch_timeout_ms // 2
            # Overdue requests are already sent, and wait for their responses.
            due = (voter.heard_ms + half for voter in role.voters if voter.heard_ms >= 0)
            times += (time for time in due if time > turn.now_ms)
            if role.change is not None:
                times.append(role.change.deadline_ms)
            return min((resigns_at(turn), *times))
        case Unattached() | Prospective() | Candidate() | Follower() | Resigned():
            return NEVER if waits_for_disk(turn) else role.deadline_ms
        case _:
            assert_never(role)


def expire(turn: Turn) -> None:
    """Handle timeouts that are due."""
    role, now = turn.role, turn.came_ms
    if isinstance(role, Leader):
        if now >= resigns_at(turn):
            note_stall(turn)
            to_resigned(turn)
        else:
            respond_to_waiting(turn)
            expire_change(turn)
    elif now >= role.deadline_ms and not waits_for_disk(turn):
        _expire_role(turn)


def waits_for_disk(turn: Turn) -> bool:
    """Return whether quorum-state or the log is being written: until then no election starts.

    A leader that resigned because its disk is slow would otherwise be elected again, and a
    candidate would end its election before its own vote is on disk.
    """
    return turn.installing or bool(turn.persisting) or bool(turn.log.writes)


def _expire_role(turn: Turn) -> None:
    role = turn.role
    match role:
        case _ if not turn.stands:
            # It may have been a voter when the timeout was set.
            to_unattached(turn, turn.election.epoch)
        case Prospective():
            lose_pre_vote(turn)
        case Candidate(is_backing_off=True, elections_lost=lost):
            to_prospective(turn, lost)
        case Candidate():
            lose_election(turn)
        case Unattached() | Follower() | Resigned():
            to_prospective(turn)


def act(turn: Turn) -> None:
    """Send the requests of the current state."""
    match turn.role:
        case Prospective() as role:
            _ask_for_votes(turn, role, pre_vote=True)
        case Candidate(is_backing_off=False) as role:
            _ask_for_votes(turn, role, pre_vote=False)
        case Leader(voters=voters):
            half = turn.config.fetch_timeout_ms // 2
            for voter in voters:
                if voter.heard_ms < 0 or turn.now_ms >= voter.heard_ms + half:
                    own, epoch = turn.key.node_id, turn.election.epoch
                    begin_epoch = BeginQuorumEpoch(own, voter.replica, epoch)
                    turn.send(voter.replica.node_id, begin_epoch)
            if go_on_with_change(turn):
                respond_to_waiting(turn)
        case Follower(leader_id, download=None):
            if not ask_to_join(turn):
                fetch(turn, leader_id)
        case Follower(leader_id, download=download) if download is not None:
            fetch_part(turn, leader_id, download)
        case Resigned(unaware=unaware, preferred=preferred):
            for node_id in sorted(unaware):
                own, epoch = turn.key.node_id, turn.election.epoch
                turn.send(node_id, EndQuorumEpoch(own, epoch, preferred))
        case Unattached() if not turn.stands and not turn.sent:
            known = (*(other.node_id for other in turn.others), *turn.bootstrap)
            if known:
                fetch(turn, known[turn.drawn(len(known))])


def _ask_for_votes(turn: Turn, role: Prospective | Candidate, *, pre_vote: bool) -> None:
    for other in turn.others:
        if other.node_id not in role.granted and other.node_id not in role.refused:
            body = Vote(turn.key, other, turn.election.epoch, turn.log.last, pre_vote)
            turn.send(other.node_id, body)
