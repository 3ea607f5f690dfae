"""Changes of the voter set (KIP-853): the leader's work, and a node's requests to the leader.

Theory of operation. If two sets differ by one voter, any majority of one shares a member with any
majority of the other. So a record can take effect when it is appended: elections and commits of
both sets overlap. This holds for one change at a time, which two rules ensure: a change starts only
after the previous one is committed, and only after the leader has committed a record of its epoch,
because another leader's change may be in fewer logs than it seems.

A new voter must support the ``kraft.version`` and must have caught up; otherwise commits could stop
until it has. A leader that is removed commits its removal with the votes of the others and then
resigns (``AddVoterHandler``, ``RemoveVoterHandler`` and ``UpdateVoterHandler`` in Kafka).
"""

from pykafka_core.errors import (
    DuplicateVoterError,
    FencedLeaderEpochError,
    InvalidRequestError,
    KafkaError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnknownLeaderEpochError,
    UnsupportedVersionError,
    VoterNotFoundError,
)
from pykafka_core.quorum.events import Respond
from pykafka_core.quorum.log.voters import VOTERS_KEY, encode_voters, recorded, updated, without
from pykafka_core.quorum.quorum import Append
from pykafka_core.quorum.raising import description, take_description
from pykafka_core.quorum.roles import NEVER, Follower, Leader, VoterSetRequest
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
    RemoveVoter,
    UpdateVoter,
    VersionsReply,
    VoterReply,
    VoterRequest,
)
from pykafka_core.quorum.transitions import append, hear_of, to_resigned
from pykafka_core.quorum.turn import Turn
from pykafka_core.quorum.values import ReplicaKey, Voter

VOTERS_RECORD = 6
"""Type of the control record (``ControlRecordType``)."""

Refusal = tuple[type[KafkaError], str]
"""An error and its reason."""


# Requests.


def on_voter_request(turn: Turn, number: int, asked: VoterRequest) -> None:
    """Start a change, or respond with an error."""
    refusal = _leader_refusal(turn, asked)
    if refusal is None and isinstance(asked, UpdateVoter) and not has_changeable_voters(turn):
        _respond(turn, number, take_description(turn, asked.voter))
        return
    refusal = refusal or change_refusal(turn)
    if refusal is None:
        refusal = _request_refusal(turn, asked)
    if refusal is not None:
        _respond(turn, number, refusal)
        return
    voters = turn.log.voter_set.voters
    match asked:
        case AddVoter(voter, timeout_ms, acks_when_committed):
            deadline_ms = turn.now_ms + max(0, min(timeout_ms, turn.config.request_timeout_ms))
            _begin(turn, VoterSetRequest(number, deadline_ms, None, voter, acks_when_committed))
        case RemoveVoter(replica):
            deadline_ms = turn.now_ms + turn.config.request_timeout_ms
            _begin(turn, VoterSetRequest(number, deadline_ms, without(voters, replica)))
        case UpdateVoter(voter):
            _respond(turn, number, None)
            after = updated(voters, voter)
            if after != voters:
                _begin(turn, VoterSetRequest(None, NEVER, after))


def _leader_refusal(turn: Turn, asked: VoterRequest) -> Refusal | None:
    if isinstance(asked, UpdateVoter) and asked.epoch != turn.election.epoch:
        is_old = asked.epoch < turn.election.epoch
        error = FencedLeaderEpochError if is_old else UnknownLeaderEpochError
        return error, error.text
    if not isinstance(turn.role, Leader):
        return NotLeaderOrFollowerError, NotLeaderOrFollowerError.text
    return None


def change_refusal(turn: Turn) -> Refusal | None:
    """Return why no change can start now, or None."""
    if is_change_pending(turn):
        return RequestTimedOutError, "the leader has another change of the voters to end first"
    if not has_committed_in_epoch(turn):
        return RequestTimedOutError, "the leader has not committed a record of its epoch yet"
    if not has_changeable_voters(turn):
        text = (
            f"kraft.version is {turn.log.voter_set.kraft_version}; voters can be changed from 1 on"
        )
        return UnsupportedVersionError, text
    return None


def has_changeable_voters(turn: Turn) -> bool:
    """Return whether the voters are in the log, which makes them changeable."""
    return turn.log.voter_set.kraft_version >= 1


def is_change_pending(turn: Turn) -> bool:
    """Return whether a change is pending, or appended but not committed."""
    role = turn.role
    is_under_way = isinstance(role, Leader) and role.change is not None
    return is_under_way or turn.log.voter_set.end > turn.high_watermark


def has_committed_in_epoch(turn: Turn) -> bool:
    """Return whether the leader has committed a record of its epoch.

    Then no uncommitted change of an earlier leader can reappear.
    """
    role = turn.role
    return isinstance(role, Leader) and turn.high_watermark > role.epoch_start


def _request_refusal(turn: Turn, asked: VoterRequest) -> Refusal | None:
    voters = turn.log.voter_set.voters
    match asked:
        case AddVoter(voter):
            node_id = voter.key.node_id
            if any(node_id == other.key.node_id for other in voters):
                return DuplicateVoterError, f"node {node_id} is among the voters {_ids(voters)}"
        case RemoveVoter(replica):
            if recorded(voters, replica) is None:
                return _not_found(replica, voters)
            if len(voters) == 1:
                return InvalidRequestError, "the last voter cannot be removed"
        case UpdateVoter(voter):
            if not _supports(turn, voter.kraft_versions):
                return InvalidRequestError, InvalidRequestError.text
            if recorded(voters, voter.key) is None:
                return _not_found(voter.key, voters)
    return None


def _not_found(replica: ReplicaKey, voters: tuple[Voter, ...]) -> Refusal:
    text = f"node {replica.node_id} with this directory is not among the voters {_ids(voters)}"
    return VoterNotFoundError, text


def _ids(voters: tuple[Voter, ...]) -> str:
    return ", ".join(str(voter.key.node_id) for voter in voters)


def _supports(turn: Turn, versions: tuple[int, int] | None) -> bool:
    level = turn.log.voter_set.kraft_version
    return versions is not None and versions[0] <= level <= versions[1]


def _begin(turn: Turn, change: VoterSetRequest) -> None:
    role = turn.role
    assert isinstance(role, Leader)
    turn.role = role._replace(change=change)


def _respond(turn: Turn, number: int, refusal: Refusal | None) -> None:
    epoch = turn.election.epoch
    if refusal is None:
        reply = VoterReply(0, turn.leader_id, epoch)
    else:
        reply = VoterReply(refusal[0].code, turn.leader_id, epoch, refusal[1])
    turn.emit(Respond(number, reply))


# Steps of a leader's change.


def go_on_with_change(turn: Turn) -> bool:
    """Request the new voter's versions, or append the record if no batch is in flight.

    Returns:
        Whether the record was appended.
    """
    role = turn.role
    if not isinstance(role, Leader) or role.change is None or role.change.end is not None:
        return False
    change = role.change
    if change.voters is None:
        assert change.added is not None, "only who is added is asked"
        asked = AskVersions(change.added, turn.election.epoch)
        turn.send(change.added.key.node_id, asked)
    elif role.in_flight is None:
        _append(turn, change, change.voters)
        return True
    return False


def _append(turn: Turn, change: VoterSetRequest, voters: tuple[Voter, ...]) -> None:
    command = Append(turn.election.epoch, [encode_voters(voters)], (VOTERS_KEY,), VOTERS_RECORD)
    append(turn, command, ())
    if change.number is not None and not change.acks_when_committed:
        _respond(turn, change.number, None)
        change = change._replace(number=None, deadline_ms=NEVER)
    role = turn.role
    assert isinstance(role, Leader)
    turn.role = role._replace(change=change._replace(end=turn.log.end))


def on_versions_reply(turn: Turn, asked: AskVersions, reply: VersionsReply | None) -> None:
    """Handle the new voter's response to AskVersions, or its failure (None)."""
    role = turn.role
    change = role.change if isinstance(role, Leader) else None
    if change is None or change.added != asked.voter or change.voters is not None:
        return
    node = f"node {asked.voter.key.node_id}"
    if reply is None or reply.error_code:
        give_up_change(turn, (RequestTimedOutError, f"{node} does not answer at its listener"))
    elif reply.versions is None or not _supports(turn, reply.versions):
        level = turn.log.voter_set.kraft_version
        give_up_change(
            turn, (InvalidRequestError, f"{node} does not support kraft.version {level}")
        )
    elif not is_caught_up(turn, asked.voter.key):
        give_up_change(
            turn, (RequestTimedOutError, f"{node} has not fetched all that the leader has")
        )
    else:
        added = asked.voter._replace(kraft_versions=reply.versions)
        voters = (*turn.log.voter_set.voters, added)
        assert isinstance(role, Leader)
        turn.role = role._replace(change=change._replace(voters=voters))


def is_caught_up(turn: Turn, replica: ReplicaKey) -> bool:
    """Return whether an observer has caught up in this epoch."""
    role = turn.role
    assert isinstance(role, Leader)
    return any(one.replica == replica and one.caught_up_ms >= 0 for one in role.observers)


def give_up_change(turn: Turn, refusal: Refusal) -> None:
    """Fail the request and drop the change; an appended record stays in the log."""
    role = turn.role
    assert isinstance(role, Leader)
    change = role.change
    turn.role = role._replace(change=None)
    if change is not None and change.number is not None:
        _respond(turn, change.number, refusal)


def expire_change(turn: Turn) -> None:
    """Fail a change whose request has timed out."""
    role = turn.role
    if (
        isinstance(role, Leader)
        and role.change is not None
        and turn.now_ms >= role.change.deadline_ms
    ):
        give_up_change(turn, (RequestTimedOutError, "the change was not committed in time"))


def end_change(turn: Turn) -> None:
    """Complete a change that was just committed; resign if this replica was removed."""
    role = turn.role
    assert isinstance(role, Leader)
    change = role.change
    if change is not None and change.end is not None and turn.high_watermark >= change.end:
        turn.role = role._replace(change=None)
        if change.number is not None:
            _respond(turn, change.number, None)
    if is_removed(turn):
        to_resigned(turn)


def is_removed(turn: Turn) -> bool:
    """Return whether the removal of this replica is committed."""
    return not turn.is_voter and turn.high_watermark >= turn.log.voter_set.end


# A node's requests to its leader.


def ask_to_join(turn: Turn) -> bool:
    """Request the leader to add or update this node in the voter set; return whether it was sent.

    A voter whose endpoints or versions differ sends UpdateVoter. An observer with
    ``controller.quorum.auto.join.enable`` sends AddVoter, after it has removed a voter with its
    node id and another directory.
    """
    role = turn.role
    if not isinstance(role, Follower) or role.download or turn.now_ms < role.joins_ms:
        return False
    asked = _joining(turn, role)
    if asked is not None:
        turn.send(role.leader_id, asked)
    return asked is not None


def _joining(turn: Turn, role: Follower) -> VoterRequest | None:
    own, known = turn.own, turn.log.voter_set
    is_behind = turn.high_watermark < max(1, role.leader_high_watermark)
    if own is None or not role.has_fetched:
        return None
    if not has_changeable_voters(turn):
        return description(turn, role)
    if is_behind or turn.log.writes:
        return None
    epoch = turn.election.epoch
    if turn.is_voter:
        return UpdateVoter(own, epoch) if recorded(known.voters, turn.key) != own else None
    if not turn.config.joins:
        return None
    same_id = (key for key in turn.voters if key.node_id == turn.key.node_id)
    replaced = next(same_id, None)
    if replaced is not None:
        return RemoveVoter(replaced, epoch)
    # The leader commits the record with this node's fetches, which wait for the response, so it
    # must not wait for the commit.
    return AddVoter(own, turn.config.request_timeout_ms, False, epoch)


def on_voter_reply(turn: Turn, asked: VoterRequest, reply: VoterReply) -> None:
    """Handle the leader's response; the next request may follow after a while."""
    if isinstance(asked, UpdateVoter):
        hear_of(turn, reply.leader_id, reply.epoch)
    role = turn.role
    if not isinstance(role, Follower) or asked.epoch != turn.election.epoch:
        return
    # A leader that does not accept descriptions cannot raise the version either: stop sending them.
    is_described = reply.error_code in (0, UnsupportedVersionError.code)
    turn.role = role._replace(
        joins_ms=turn.now_ms + turn.config.fetch_timeout_ms,
        is_described=role.is_described or (is_described and isinstance(asked, UpdateVoter)),
    )
