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
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.transitions import append, hear_of, to_resigned
from pykafka_core.quorum.values import ReplicaKey, Voter

VOTERS_RECORD = 6
"""Type of the control record (``ControlRecordType``)."""

Refusal = tuple[type[KafkaError], str]
"""An error and its reason."""


# Requests.


def on_voter_request(transition: Transition, number: int, asked: VoterRequest) -> None:
    """Start a change, or respond with an error."""
    refusal = _leader_refusal(transition, asked)
    if refusal is None and isinstance(asked, UpdateVoter) and not has_changeable_voters(transition):
        _respond(transition, number, take_description(transition, asked.voter))
        return
    refusal = refusal or change_refusal(transition)
    if refusal is None:
        refusal = _request_refusal(transition, asked)
    if refusal is not None:
        _respond(transition, number, refusal)
        return
    voters = transition.log.voter_set.voters
    match asked:
        case AddVoter(voter, timeout_ms, acks_when_committed):
            deadline_ms = transition.now_ms + max(
                0, min(timeout_ms, transition.config.request_timeout_ms)
            )
            _begin(
                transition, VoterSetRequest(number, deadline_ms, None, voter, acks_when_committed)
            )
        case RemoveVoter(replica):
            deadline_ms = transition.now_ms + transition.config.request_timeout_ms
            _begin(transition, VoterSetRequest(number, deadline_ms, without(voters, replica)))
        case UpdateVoter(voter):
            _respond(transition, number, None)
            after = updated(voters, voter)
            if after != voters:
                _begin(transition, VoterSetRequest(None, NEVER, after))


def _leader_refusal(transition: Transition, asked: VoterRequest) -> Refusal | None:
    if isinstance(asked, UpdateVoter) and asked.epoch != transition.election.epoch:
        is_old = asked.epoch < transition.election.epoch
        error = FencedLeaderEpochError if is_old else UnknownLeaderEpochError
        return error, error.text
    if not isinstance(transition.role, Leader):
        return NotLeaderOrFollowerError, NotLeaderOrFollowerError.text
    return None


def change_refusal(transition: Transition) -> Refusal | None:
    """Return why no change can start now, or None."""
    if is_change_pending(transition):
        return RequestTimedOutError, "the leader has another change of the voters to end first"
    if not has_committed_in_epoch(transition):
        return RequestTimedOutError, "the leader has not committed a record of its epoch yet"
    if not has_changeable_voters(transition):
        text = f"kraft.version is {transition.log.voter_set.kraft_version}; voters can be changed from 1 on"
        return UnsupportedVersionError, text
    return None


def has_changeable_voters(transition: Transition) -> bool:
    """Return whether the voters are in the log, which makes them changeable."""
    return transition.log.voter_set.kraft_version >= 1


def is_change_pending(transition: Transition) -> bool:
    """Return whether a change is pending, or appended but not committed."""
    role = transition.role
    is_under_way = isinstance(role, Leader) and role.change is not None
    return is_under_way or transition.log.voter_set.end > transition.high_watermark


def has_committed_in_epoch(transition: Transition) -> bool:
    """Return whether the leader has committed a record of its epoch.

    Then no uncommitted change of an earlier leader can reappear.
    """
    role = transition.role
    return isinstance(role, Leader) and transition.high_watermark > role.epoch_start


def _request_refusal(transition: Transition, asked: VoterRequest) -> Refusal | None:
    voters = transition.log.voter_set.voters
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
            if not _supports(transition, voter.kraft_versions):
                return InvalidRequestError, InvalidRequestError.text
            if recorded(voters, voter.key) is None:
                return _not_found(voter.key, voters)
    return None


def _not_found(replica: ReplicaKey, voters: tuple[Voter, ...]) -> Refusal:
    text = f"node {replica.node_id} with this directory is not among the voters {_ids(voters)}"
    return VoterNotFoundError, text


def _ids(voters: tuple[Voter, ...]) -> str:
    return ", ".join(str(voter.key.node_id) for voter in voters)


def _supports(transition: Transition, versions: tuple[int, int] | None) -> bool:
    level = transition.log.voter_set.kraft_version
    return versions is not None and versions[0] <= level <= versions[1]


def _begin(transition: Transition, change: VoterSetRequest) -> None:
    role = transition.role
    assert isinstance(role, Leader)
    transition.role = role._replace(change=change)


def _respond(transition: Transition, number: int, refusal: Refusal | None) -> None:
    epoch = transition.election.epoch
    if refusal is None:
        reply = VoterReply(0, transition.leader_id, epoch)
    else:
        reply = VoterReply(refusal[0].code, transition.leader_id, epoch, refusal[1])
    transition.emit(Respond(number, reply))


# Steps of a leader's change.


def go_on_with_change(transition: Transition) -> bool:
    """Request the new voter's versions, or append the record if no batch is in flight.

    Returns:
        Whether the record was appended.
    """
    role = transition.role
    if not isinstance(role, Leader) or role.change is None or role.change.end is not None:
        return False
    change = role.change
    if change.voters is None:
        assert change.added is not None, "only who is added is asked"
        asked = AskVersions(change.added, transition.election.epoch)
        transition.send(change.added.key.node_id, asked)
    elif role.in_flight is None:
        _append(transition, change, change.voters)
        return True
    return False


def _append(transition: Transition, change: VoterSetRequest, voters: tuple[Voter, ...]) -> None:
    command = Append(
        transition.election.epoch, [encode_voters(voters)], (VOTERS_KEY,), VOTERS_RECORD
    )
    append(transition, command, ())
    if change.number is not None and not change.acks_when_committed:
        _respond(transition, change.number, None)
        change = change._replace(number=None, deadline_ms=NEVER)
    role = transition.role
    assert isinstance(role, Leader)
    transition.role = role._replace(change=change._replace(end=transition.log.end))


def on_versions_reply(
    transition: Transition, asked: AskVersions, reply: VersionsReply | None
) -> None:
    """Handle the new voter's response to AskVersions, or its failure (None)."""
    role = transition.role
    change = role.change if isinstance(role, Leader) else None
    if change is None or change.added != asked.voter or change.voters is not None:
        return
    node = f"node {asked.voter.key.node_id}"
    if reply is None or reply.error_code:
        give_up_change(
            transition, (RequestTimedOutError, f"{node} does not answer at its listener")
        )
    elif reply.versions is None or not _supports(transition, reply.versions):
        level = transition.log.voter_set.kraft_version
        give_up_change(
            transition, (InvalidRequestError, f"{node} does not support kraft.version {level}")
        )
    elif not is_caught_up(transition, asked.voter.key):
        give_up_change(
            transition, (RequestTimedOutError, f"{node} has not fetched all that the leader has")
        )
    else:
        added = asked.voter._replace(kraft_versions=reply.versions)
        voters = (*transition.log.voter_set.voters, added)
        assert isinstance(role, Leader)
        transition.role = role._replace(change=change._replace(voters=voters))


def is_caught_up(transition: Transition, replica: ReplicaKey) -> bool:
    """Return whether an observer has caught up in this epoch."""
    role = transition.role
    assert isinstance(role, Leader)
    return any(one.replica == replica and one.caught_up_ms >= 0 for one in role.observers)


def give_up_change(transition: Transition, refusal: Refusal) -> None:
    """Fail the request and drop the change; an appended record stays in the log."""
    role = transition.role
    assert isinstance(role, Leader)
    change = role.change
    transition.role = role._replace(change=None)
    if change is not None and change.number is not None:
        _respond(transition, change.number, refusal)


def expire_change(transition: Transition) -> None:
    """Fail a change whose request has timed out."""
    role = transition.role
    if (
        isinstance(role, Leader)
        and role.change is not None
        and transition.now_ms >= role.change.deadline_ms
    ):
        give_up_change(transition, (RequestTimedOutError, "the change was not committed in time"))


def end_change(transition: Transition) -> None:
    """Complete a change that was just committed; resign if this replica was removed."""
    role = transition.role
    assert isinstance(role, Leader)
    change = role.change
    if change is not None and change.end is not None and transition.high_watermark >= change.end:
        transition.role = role._replace(change=None)
        if change.number is not None:
            _respond(transition, change.number, None)
    if is_removed(transition):
        to_resigned(transition)


def is_removed(transition: Transition) -> bool:
    """Return whether the removal of this replica is committed."""
    return not transition.is_voter and transition.high_watermark >= transition.log.voter_set.end


# A node's requests to its leader.


def ask_to_join(transition: Transition) -> bool:
    """Request the leader to add or update this node in the voter set; return whether it was sent.

    A voter whose endpoints or versions differ sends UpdateVoter. An observer with
    ``controller.quorum.auto.join.enable`` sends AddVoter, after it has removed a voter with its
    node id and another directory.
    """
    role = transition.role
    if not isinstance(role, Follower) or role.download or transition.now_ms < role.joins_ms:
        return False
    asked = _joining(transition, role)
    if asked is not None:
        transition.send(role.leader_id, asked)
    return asked is not None


def _joining(transition: Transition, role: Follower) -> VoterRequest | None:
    own, known = transition.own, transition.log.voter_set
    is_behind = transition.high_watermark < max(1, role.leader_high_watermark)
    if own is None or not role.has_fetched:
        return None
    if not has_changeable_voters(transition):
        return description(transition, role)
    if is_behind or transition.log.writes:
        return None
    epoch = transition.election.epoch
    if transition.is_voter:
        return UpdateVoter(own, epoch) if recorded(known.voters, transition.key) != own else None
    if not transition.config.joins:
        return None
    same_id = (key for key in transition.voters if key.node_id == transition.key.node_id)
    replaced = next(same_id, None)
    if replaced is not None:
        return RemoveVoter(replaced, epoch)
    # The leader commits the record with this node's fetches, which wait for the response, so it
    # must not wait for the commit.
    return AddVoter(own, transition.config.request_timeout_ms, False, epoch)


def on_voter_reply(transition: Transition, asked: VoterRequest, reply: VoterReply) -> None:
    """Handle the leader's response; the next request may follow after a while."""
    if isinstance(asked, UpdateVoter):
        hear_of(transition, reply.leader_id, reply.epoch)
    role = transition.role
    if not isinstance(role, Follower) or asked.epoch != transition.election.epoch:
        return
    # A leader that does not accept descriptions cannot raise the version either: stop sending them.
    is_described = reply.error_code in (0, UnsupportedVersionError.code)
    transition.role = role._replace(
        joins_ms=transition.now_ms + transition.config.fetch_timeout_ms,
        is_described=role.is_described or (is_described and isinstance(asked, UpdateVoter)),
    )
