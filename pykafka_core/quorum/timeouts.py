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
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.transitions import (
    lose_election,
    lose_pre_vote,
    to_prospective,
    to_resigned,
    to_unattached,
)
from pykafka_core.quorum.voter_changes import ask_to_join, expire_change, go_on_with_change


def role_deadline(transition: Transition) -> int:
    """Return the time of the state's next timeout; `NEVER` if it has none."""
    role = transition.role
    match role:
        case Leader():
            times = [waiting.deadline_ms for waiting in role.waiting]
            half = transition.config.fetch_timeout_ms // 2
            # Overdue requests are already sent, and wait for their responses.
            due = (voter.heard_ms + half for voter in role.voters if voter.heard_ms >= 0)
            times += (time for time in due if time > transition.now_ms)
            if role.change is not None:
                times.append(role.change.deadline_ms)
            return min((resigns_at(transition), *times))
        case Unattached() | Prospective() | Candidate() | Follower() | Resigned():
            return NEVER if waits_for_disk(transition) else role.deadline_ms
        case _:
            assert_never(role)


def expire(transition: Transition) -> None:
    """Handle timeouts that are due."""
    role, now = transition.role, transition.came_ms
    if isinstance(role, Leader):
        if now >= resigns_at(transition):
            note_stall(transition)
            to_resigned(transition)
        else:
            respond_to_waiting(transition)
            expire_change(transition)
    elif now >= role.deadline_ms and not waits_for_disk(transition):
        _expire_role(transition)


def waits_for_disk(transition: Transition) -> bool:
    """Return whether quorum-state or the log is being written: until then no election starts.

    A leader that resigned because its disk is slow would otherwise be elected again, and a
    candidate would end its election before its own vote is on disk.
    """
    return transition.installing or bool(transition.persisting) or bool(transition.log.writes)


def _expire_role(transition: Transition) -> None:
    role = transition.role
    match role:
        case _ if not transition.stands:
            # It may have been a voter when the timeout was set.
            to_unattached(transition, transition.election.epoch)
        case Prospective():
            lose_pre_vote(transition)
        case Candidate(is_backing_off=True, elections_lost=lost):
            to_prospective(transition, lost)
        case Candidate():
            lose_election(transition)
        case Unattached() | Follower() | Resigned():
            to_prospective(transition)


def act(transition: Transition) -> None:
    """Send the requests of the current state."""
    match transition.role:
        case Prospective() as role:
            _ask_for_votes(transition, role, pre_vote=True)
        case Candidate(is_backing_off=False) as role:
            _ask_for_votes(transition, role, pre_vote=False)
        case Leader(voters=voters):
            half = transition.config.fetch_timeout_ms // 2
            for voter in voters:
                if voter.heard_ms < 0 or transition.now_ms >= voter.heard_ms + half:
                    own, epoch = transition.key.node_id, transition.election.epoch
                    begin_epoch = BeginQuorumEpoch(own, voter.replica, epoch)
                    transition.send(voter.replica.node_id, begin_epoch)
            if go_on_with_change(transition):
                respond_to_waiting(transition)
        case Follower(leader_id, download=None):
            if not ask_to_join(transition):
                fetch(transition, leader_id)
        case Follower(leader_id, download=download) if download is not None:
            fetch_part(transition, leader_id, download)
        case Resigned(unaware=unaware, preferred=preferred):
            for node_id in sorted(unaware):
                own, epoch = transition.key.node_id, transition.election.epoch
                transition.send(node_id, EndQuorumEpoch(own, epoch, preferred))
        case Unattached() if not transition.stands and not transition.sent:
            known = (*(other.node_id for other in transition.others), *transition.bootstrap)
            if known:
                fetch(transition, known[transition.drawn(len(known))])


def _ask_for_votes(
    transition: Transition, role: Prospective | Candidate, *, pre_vote: bool
) -> None:
    for other in transition.others:
        if other.node_id not in role.granted and other.node_id not in role.refused:
            body = Vote(
                transition.key, other, transition.election.epoch, transition.log.last, pre_vote
            )
            transition.send(other.node_id, body)
