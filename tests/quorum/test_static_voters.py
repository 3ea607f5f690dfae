"""The node id alone identifies a static voter; its directory id does not count."""

import json

import pytest

from pykafka_core.broker.start.quorum_place import quorum_place
from pykafka_core.broker.storage import quorum_state
from pykafka_core.config import Listener, StartConfig
from pykafka_core.errors import InvalidVoterKeyError, UnsupportedVersionError
from pykafka_core.quorum.events import Respond, Send
from pykafka_core.quorum.log.state import NO_VOTERS, EpochStart, LogState
from pykafka_core.quorum.rpc import RemoveVoter, Vote, VoteReply
from pykafka_core.quorum.static_voters import static_ids
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch, ReplicaKey, Voter, VoterSet
from pykafka_core.quorum.wire.envelope import Envelope
from pykafka_core.quorum.wire.requests import encode_request
from pykafka_core.types import ZERO_ID
from tests.quorum.test_replica import Driven, fetch_of

DIRECTORY, OTHER = bytes(range(1, 17)), bytes(range(17, 33))
OWN = ReplicaKey(1, DIRECTORY)
STATIC = VoterSet(0, tuple(Voter(ReplicaKey(node_id, ZERO_ID)) for node_id in (1, 2, 3)))
IN_LOG = VoterSet(9, tuple(Voter(ReplicaKey(node, DIRECTORY)) for node in (1, 2, 3)), 1)


def driven(voters: VoterSet = STATIC) -> Driven:
    log = LogState(voter_sets=(voters,))
    return Driven(OWN, (), ElectionState(3), log, own=Voter(OWN))


def vote_for(candidate: ReplicaKey, voter: ReplicaKey, epoch: int = 4) -> Vote:
    return Vote(candidate, voter, epoch, OffsetAndEpoch(0, 0), False)


@pytest.mark.parametrize("directory", [ZERO_ID, DIRECTORY], ids=["unnamed", "named"])
def test_a_voter_gets_a_vote_with_any_directory_and_once(directory: bytes) -> None:
    replica = driven()
    replica.ask(vote_for(ReplicaKey(2, OTHER), ReplicaKey(1, directory)))
    assert replica.only(Respond).body == VoteReply(0, -1, 4, True)
    assert replica.replica.election.voted == ReplicaKey(2, ZERO_ID)
    replica.ask(vote_for(ReplicaKey(3, OTHER), ReplicaKey(1, directory)))
    assert replica.only(Respond).body == VoteReply(0, -1, 4, False)


def test_vote_for_another_directory_is_not_granted() -> None:
    replica = driven()
    replica.ask(vote_for(ReplicaKey(2, OTHER), ReplicaKey(1, OTHER)))
    reply = replica.only(Respond).body
    assert isinstance(reply, VoteReply)
    assert reply.error_code == InvalidVoterKeyError.code


def test_voters_in_the_log_are_identified_by_their_directories() -> None:
    replica = driven(IN_LOG)
    assert replica.replica.key == OWN
    replica.ask(vote_for(ReplicaKey(2, OTHER), OWN))
    assert replica.replica.election.voted == ReplicaKey(2, OTHER)


def test_a_fetch_of_a_voter_with_a_directory_counts_and_voters_do_not_change() -> None:
    replica = driven()
    replica.elect()
    (end,) = {replica.replica.log.end}
    epoch = replica.replica.leader_epoch
    replica.ask(fetch_of(ReplicaKey(2, OTHER), end, epoch, epoch))
    assert replica.replica.high_watermark == end
    assert [one.end for one in replica.replica.other_voters] == [end, -1]
    assert replica.replica.observers == ()
    replica.ask(RemoveVoter(ReplicaKey(2, ZERO_ID)))
    assert getattr(replica.only(Respond).body, "error_code", 0) == UnsupportedVersionError.code


def test_requests_contain_the_own_directory() -> None:
    replica = driven()
    replica.wait_for("Prospective")
    envelope = Envelope("cluster", OWN, {})
    for sent in replica.all(Send):
        assert isinstance(sent.body, Vote)
        message = encode_request(envelope, sent.body)
        (partition,) = message.topics[0].partitions  # type: ignore[union-attr]
        assert partition.replica_directory_id == DIRECTORY  # type: ignore[union-attr]
        assert partition.voter_directory_id == ZERO_ID  # type: ignore[union-attr]


def test_quorum_state_is_version_0_with_the_voters() -> None:
    state = ElectionState(7, 2, ReplicaKey(3, ZERO_ID))
    content = quorum_state.encode(state, static_ids(STATIC))
    assert json.loads(content) == {
        "clusterId": "",
        "leaderId": 2,
        "leaderEpoch": 7,
        "votedId": 3,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}, {"voterId": 2}, {"voterId": 3}],
        "data_version": 0,
    }
    assert quorum_state.decode(content) == state
    assert static_ids(IN_LOG) == static_ids(VoterSet(0, ())) == ()


def test_static_voters_apply_again_after_a_start_truncated_the_record_of_voters() -> None:
    """A controller was killed before others replicated its record that raises `kraft.version`."""
    listener = Listener("CONTROLLER", "h", 9093)
    start = StartConfig.from_settings(
        {
            "process.roles": "controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@h:9093,2@h:9094,3@h:9095",
        }
    )
    log = LogState.loaded(9, (EpochStart(3, 0),), None, voter_sets=(NO_VOTERS, IN_LOG))
    place = quorum_place(start, OWN, log, ElectionState(3), [(listener, 9093)])
    assert place.log.voter_set == IN_LOG
    assert place.log.truncating(8).voter_set.keys == STATIC.keys
