"""Changes of the voter set (KIP-853): a few events test each rule.

Tests of whole histories are in tests/simulation/quorum.
"""

from typing import Any

import pytest

from pykafka_core.errors import (
    DuplicateVoterError,
    FencedLeaderEpochError,
    InconsistentVoterSetError,
    InvalidRequestError,
    InvalidVoterKeyError,
    KafkaError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnknownLeaderEpochError,
    UnsupportedVersionError,
    VoterNotFoundError,
)
from pykafka_core.quorum.events import (
    AppendFetched,
    Replied,
    Respond,
    Send,
    Tick,
    Truncate,
    Truncated,
)
from pykafka_core.quorum.log.state import EpochStart, LogState
from pykafka_core.quorum.log.voters import VOTERS_KEY, decode_voters
from pykafka_core.quorum.quorum import Append, Appended
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EpochReply,
    Fetch,
    FetchReply,
    RemoveVoter,
    UpdateVoter,
    VersionsReply,
    Vote,
    VoteReply,
    VoterReply,
)
from pykafka_core.quorum.values import (
    Batch,
    ElectionState,
    OffsetAndEpoch,
    QuorumConfig,
    ReplicaKey,
    Voter,
    VoterEndpoint,
    VoterSet,
    VoterSetChange,
)
from tests.quorum.test_replica import Driven

ONE, TWO, THREE = (
    Voter(ReplicaKey(node, bytes(15) + bytes((node,))), (VoterEndpoint("CONTROLLER", "h", node),))
    for node in (1, 2, 3)
)
NEW_TWO = TWO._replace(key=ReplicaKey(2, bytes(15) + b"x"))
EPOCHS = (EpochStart(1, 0),)
FIRST = ElectionState(1)


def log_of(*voters: Voter, kraft_version: int = 1) -> LogState:
    """A log of six records; the batch with the voters ends at offset 5."""
    return LogState.loaded(6, EPOCHS, voter_sets=(VoterSet(5, voters, kraft_version),))


def driven(own: Voter, log: LogState, state: ElectionState = FIRST, **more: Any) -> Driven:
    return Driven(own.key, (), state, log, own=own, **more)


def alone() -> Driven:
    """Return a leader that is the only voter, in epoch 2 with end 7; all records are committed."""
    leader = driven(ONE, log_of(ONE))
    assert leader.replica.state == "Leader"
    leader.handle(Appended(0, 6))
    return leader


def leading(*voters: Voter) -> Driven:
    """Return the first voter as the leader in epoch 2; all records are committed."""
    leader = driven(voters[0], log_of(*voters))
    leader.wait_for("Prospective")
    for _ in range(2):
        for other in voters[1:]:
            if leader.replica.state != "Leader":
                leader.vote_of(other.key.node_id, granted=True)
    leader.handle(Appended(0, 6))
    for other in voters[1:]:
        leader.ask(fetch_of(other, 7))
    assert leader.replica.high_watermark == 7
    return leader


def fetch_of(voter: Voter, offset: int) -> Fetch:
    return Fetch(voter.key, 2, offset, 2 if offset > 6 else 1, 0)


def refusal(leader: Driven, asked: Body) -> int:
    leader.ask(asked)
    (reply,) = [one.body for one in leader.all(Respond) if isinstance(one.body, VoterReply)]
    return reply.error_code


def versions_asked(leader: Driven) -> Send:
    (send,) = [one for one in leader.all(Send) if isinstance(one.body, AskVersions)]
    return send


def respond_versions(leader: Driven, versions: tuple[int, int] | None = (0, 1)) -> None:
    correlation = next(at for at, _, body in leader.replica.sent if isinstance(body, AskVersions))
    leader.handle(Replied(leader.replica.now_ms, correlation, VersionsReply(0, versions=versions)))


def voters_appended(leader: Driven) -> list[int]:
    command = leader.only(Append)
    assert command.keys == (VOTERS_KEY,)
    return [voter.key.node_id for voter in decode_voters(command.values[0])]


# Adding.


def test_an_observer_that_has_caught_up_is_added_and_counts_from_the_append_on() -> None:
    leader = alone()
    leader.ask(fetch_of(TWO, 7))
    leader.ask(AddVoter(TWO, 1000))
    assert versions_asked(leader).node_id == 2
    respond_versions(leader)
    assert voters_appended(leader) == [1, 2]
    assert leader.replica.voters == (ONE.key, TWO.key)
    leader.handle(Appended(0, 7))
    assert leader.replica.high_watermark == 7, "the other one of two is needed"
    leader.ask(fetch_of(TWO, 8))
    assert leader.replica.high_watermark == 8
    assert VoterReply(0, 1, 2) in [reply.body for reply in leader.all(Respond)]


def test_add_voter_can_be_answered_before_the_commit() -> None:
    """A node that joins by itself requests this, because it cannot fetch while it waits."""
    leader = alone()
    leader.ask(fetch_of(TWO, 7))
    leader.ask(AddVoter(TWO, 1000, False))
    respond_versions(leader)
    assert leader.only(Respond).body == VoterReply(0, 1, 2)


@pytest.mark.parametrize(
    ("offset", "versions", "error"),
    [
        (1, (0, 1), RequestTimedOutError),
        (7, (0, 0), InvalidRequestError),
        (7, None, InvalidRequestError),
    ],
    ids=["lags", "an older version", "says nothing"],
)
def test_unsuitable_voter_is_not_added(
    offset: int, versions: tuple[int, int] | None, error: type[KafkaError]
) -> None:
    leader = alone()
    leader.ask(fetch_of(TWO, offset))
    leader.ask(AddVoter(TWO, 1000))
    respond_versions(leader, versions)
    (reply,) = [one.body for one in leader.all(Respond) if isinstance(one.body, VoterReply)]
    assert reply.error_code == error.code
    assert leader.replica.voters == (ONE.key,)
    assert refusal(leader, RemoveVoter(TWO.key)) == VoterNotFoundError.code, "nothing is pending"


def test_request_to_add_a_silent_voter_times_out() -> None:
    leader = alone()
    leader.ask(AddVoter(TWO, 100))
    leader.handle(Tick(leader.replica.deadline_ms))
    assert leader.only(Respond).body.error_code == RequestTimedOutError.code


# Rejected changes.


def test_one_change_at_a_time() -> None:
    leader = alone()
    leader.ask(AddVoter(TWO, 1000))
    for asked in (AddVoter(THREE, 1000), RemoveVoter(ONE.key), UpdateVoter(ONE, 2)):
        assert refusal(leader, asked) == RequestTimedOutError.code


def test_uncommitted_change_blocks_the_next_one_even_after_its_timeout() -> None:
    leader = leading(ONE, TWO, THREE)
    leader.ask(RemoveVoter(THREE.key))
    leader.handle(Tick(leader.replica.now_ms + 2000))
    assert refusal(leader, RemoveVoter(TWO.key)) == RequestTimedOutError.code


def test_no_change_before_a_record_of_the_epoch_is_committed() -> None:
    leader = driven(ONE, log_of(ONE))
    assert leader.replica.state == "Leader"
    assert refusal(leader, RemoveVoter(TWO.key)) == RequestTimedOutError.code
    leader.handle(Appended(0, 6))
    assert refusal(leader, RemoveVoter(TWO.key)) == VoterNotFoundError.code


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (AddVoter(NEW_TWO, 1000), DuplicateVoterError),
        (RemoveVoter(NEW_TWO.key), VoterNotFoundError),
        (UpdateVoter(NEW_TWO, 2), VoterNotFoundError),
        (UpdateVoter(TWO._replace(kraft_versions=(0, 0)), 2), InvalidRequestError),
        (UpdateVoter(TWO, 1), FencedLeaderEpochError),
        (UpdateVoter(TWO, 3), UnknownLeaderEpochError),
    ],
)
def test_invalid_change_is_rejected(asked: Body, error: type[KafkaError]) -> None:
    assert refusal(leading(ONE, TWO), asked) == error.code


def test_last_voter_cannot_be_removed() -> None:
    assert refusal(alone(), RemoveVoter(ONE.key)) == InvalidRequestError.code


def test_static_voters_do_not_change() -> None:
    leader = driven(ONE, log_of(ONE, kraft_version=0))
    leader.handle(Appended(0, 6))
    assert refusal(leader, AddVoter(TWO, 1000)) == UnsupportedVersionError.code


def test_follower_rejects_changes() -> None:
    follower = driven(ONE, log_of(ONE, TWO), ElectionState(5, leader_id=2))
    assert refusal(follower, RemoveVoter(TWO.key)) == NotLeaderOrFollowerError.code


# Removing and updating.


def test_removed_leader_resigns_after_the_commit() -> None:
    leader = leading(ONE, TWO)
    leader.ask(RemoveVoter(ONE.key))
    assert voters_appended(leader) == [2]
    leader.handle(Appended(0, 7))
    assert (leader.replica.state, leader.replica.high_watermark) == ("Leader", 7), (
        "it counts for nothing"
    )
    leader.ask(fetch_of(TWO, 8))
    assert (leader.replica.state, leader.replica.high_watermark) == ("Resigned", 8)
    leader.handle(Tick(leader.replica.deadline_ms))
    assert leader.replica.state == "Observer"


def test_voter_with_an_uncommitted_removal_still_stands_for_election() -> None:
    """The other voter cannot win: it needs this voter's vote, but its own log is shorter."""
    sets = (VoterSet(3, (ONE, TWO), 1), VoterSet(6, (TWO,), 1))
    replica = driven(ONE, LogState.loaded(6, EPOCHS, voter_sets=sets), ElectionState(1, 1))
    replica.handle(Tick(replica.replica.deadline_ms))
    assert [(one.node_id, type(one.body)) for one in replica.all(Send)] == [(2, Vote)]
    replica.vote_of(2, granted=True)
    replica.vote_of(2, granted=True)
    assert replica.replica.leader_id == 1


def test_voter_updates_its_endpoints() -> None:
    moved = TWO._replace(endpoints=(VoterEndpoint("CONTROLLER", "other", 9),))
    follower = driven(moved, log_of(ONE, TWO), ElectionState(2, leader_id=1))
    follower.fetched(FetchReply(0, 1, 2, 6))
    assert follower.only(Send).body == UpdateVoter(moved, 2)
    leader = leading(ONE, TWO)
    leader.ask(UpdateVoter(moved, 2))
    assert leader.only(Respond).body == VoterReply(0, 1, 2), "at once"
    assert decode_voters(leader.only(Append).values[0]) == (ONE, moved)


# Joining by itself.


def joining(own: Voter, *voters: Voter) -> Driven:
    observer = driven(
        own, log_of(*voters), ElectionState(2, leader_id=1), config=QuorumConfig(joins=True)
    )
    observer.fetched(FetchReply(0, 1, 2, 6))
    return observer


def test_observer_that_has_caught_up_requests_to_be_added() -> None:
    body = joining(THREE, ONE, TWO).only(Send).body
    assert body == AddVoter(THREE, 2000, False, 2)


def test_old_voter_with_the_same_node_id_is_removed_first() -> None:
    assert joining(NEW_TWO, ONE, TWO).only(Send).body == RemoveVoter(TWO.key, 2)


# The voters in the log apply.


def fetched(change: VoterSetChange) -> Driven:
    follower = driven(ONE, log_of(ONE, TWO), ElectionState(2, leader_id=2))
    follower.fetched(FetchReply(0, 2, 2, 6, batches=(Batch(6, 2, 1, b"", change),)))
    assert follower.only(AppendFetched)
    return follower


def test_voter_set_applies_at_once_and_is_dropped_with_its_record() -> None:
    follower = fetched(VoterSetChange((ONE, TWO, THREE), None))
    assert follower.replica.voters == (ONE.key, TWO.key, THREE.key)
    follower.handle(Appended(0, 6))
    follower.fetched(FetchReply(0, 2, 2, 6, diverging=OffsetAndEpoch(6, 1)))
    assert follower.only(Truncate) == Truncate(6)
    assert [key.node_id for key in follower.replica.voters] == [1, 2]
    follower.handle(Truncated())
    assert follower.replica.log.voter_set.end == 5


def test_the_first_epoch_of_a_new_quorum_puts_its_voters_in_the_log() -> None:
    log = LogState(voter_sets=(VoterSet(0, (ONE,), 1),))
    leader = driven(ONE, log, ElectionState(0))
    command = leader.only(Append)
    assert command.keys == (b"\0\0\0\x02", b"\0\0\0\x05", b"\0\0\0\x06")
    assert leader.replica.log.voter_set == VoterSet(3, (ONE,), 1)


# Trusted senders.


def test_candidate_missing_from_the_log_gets_a_vote_unless_a_leader_is_active() -> None:
    asked = Vote(THREE.key, ONE.key, 6, OffsetAndEpoch(9, 5), False)
    replica = driven(ONE, log_of(ONE, TWO), ElectionState(5))
    replica.ask(asked)
    assert replica.only(Respond).body == VoteReply(0, -1, 6, True)
    follower = driven(ONE, log_of(ONE, TWO), ElectionState(5, leader_id=2))
    follower.fetched(FetchReply(0, 2, 5, 6))
    follower.ask(asked)
    assert follower.only(Respond).body == VoteReply(InconsistentVoterSetError.code, 2, 5, False)
    assert follower.replica.leader_epoch == 5


def test_removed_voter_in_a_later_epoch_ends_the_current_one() -> None:
    """The removed voter ignores leaders of earlier epochs, so it would never read its removal."""
    sets = VoterSet(2, (ONE, TWO, THREE), 1), VoterSet(5, (ONE, TWO), 1)
    log = LogState.loaded(6, EPOCHS, voter_sets=sets)
    follower = driven(ONE, log, ElectionState(5, leader_id=2))
    follower.fetched(FetchReply(0, 2, 5, 6))
    asked = Vote(THREE.key, ONE.key, 5, OffsetAndEpoch(4, 5), True)
    follower.ask(asked)
    assert follower.only(Respond).body == VoteReply(InconsistentVoterSetError.code, 2, 5, False)
    follower.ask(asked._replace(epoch=6))
    assert follower.only(Respond).body == VoteReply(InconsistentVoterSetError.code, -1, 6, False)
    # An observer could not end the leader's epoch, and would have no leader itself.
    observer = driven(NEW_TWO, log, ElectionState(5, leader_id=1))
    observer.fetched(FetchReply(0, 1, 5, 6))
    observer.ask(asked._replace(voter=NEW_TWO.key, epoch=6))
    assert observer.replica.leader_epoch == 5


def test_controller_missing_from_its_log_votes_with_its_directory_id() -> None:
    observer = driven(THREE, log_of(ONE, TWO), ElectionState(5))
    asked = Vote(ONE.key, THREE.key, 6, OffsetAndEpoch(9, 5), False)
    observer.ask(asked._replace(voter=THREE.key._replace(directory_id=bytes(16))))
    assert observer.only(Respond).body.error_code == InvalidVoterKeyError.code
    observer.ask(asked)
    assert observer.only(Respond).body == VoteReply(0, -1, 6, True)


def test_leader_missing_from_the_log_is_followed() -> None:
    replica = driven(ONE, log_of(ONE, TWO), ElectionState(5))
    replica.ask(BeginQuorumEpoch(3, ONE.key, 6))
    assert replica.only(Respond).body == EpochReply(0, 3, 6)
    assert replica.replica.leader_id == 3


def test_node_without_voters_asks_its_bootstrap_servers() -> None:
    node = driven(THREE, LogState(), ElectionState(0), bootstrap=(-2,))
    assert node.only(Send).node_id == -2
    node.fetched(FetchReply(NotLeaderOrFollowerError.code, 1, 4))
    assert node.only(Send)[1:3] == (1, Fetch(THREE.key, 4, 0, 0, 0))
    assert node.replica.state == "Observer"


def test_change_of_the_voters_completes_waiting_fetches() -> None:
    """The commit needs the next fetch of the voter, which first waits for the reply to this one."""
    leader = leading(ONE, TWO, THREE)
    leader.ask(fetch_of(TWO, 7)._replace(wait_ms=500, high_watermark=7))
    waiting = leader.numbers
    assert not leader.all(Respond)
    leader.ask(RemoveVoter(THREE.key))
    assert voters_appended(leader) == [1, 2]
    (reply,) = [one for one in leader.all(Respond) if one.number == waiting]
    assert reply.read_from == 7
    leader.handle(Appended(0, 7))
    leader.ask(fetch_of(TWO, 8))
    assert leader.replica.high_watermark == 8
