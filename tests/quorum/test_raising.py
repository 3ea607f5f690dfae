"""``kraft.version`` is raised from 0 to 1, and static voters are written to the log (KIP-853)."""

import pytest

from pykafka_core.errors import (
    FencedLeaderEpochError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnsupportedVersionError,
    VoterNotFoundError,
)
from pykafka_core.protocol.messages import Message, NoOpRecord
from pykafka_core.quorum.events import InDoubt, Replied, Respond, Send
from pykafka_core.quorum.log.records import LEADER_CHANGE
from pykafka_core.quorum.log.state import LogState
from pykafka_core.quorum.log.voters import KRAFT_VERSION_KEY, VOTERS_KEY, decode_voters
from pykafka_core.quorum.quorum import Append, Appended, Committed, Proposal
from pykafka_core.quorum.rpc import FetchReply, UpdateVoter, VoterReply
from pykafka_core.quorum.values import ElectionState, ReplicaKey, Voter, VoterEndpoint, VoterSet
from pykafka_core.types import ZERO_ID
from tests.quorum.test_replica import Driven, fetch_of

ONE, TWO, THREE = VOTERS = tuple(
    Voter(ReplicaKey(node, bytes([node] * 16)), (VoterEndpoint("CONTROLLER", "h", node),))
    for node in (1, 2, 3)
)
STATIC = VoterSet(
    0, tuple(one._replace(key=ReplicaKey(one.key.node_id, ZERO_ID)) for one in VOTERS)
)
STATE = ElectionState(3)
RECORDS: list[Message] = [NoOpRecord()]
RAISING = Proposal(RECORDS, [b"r"], 1)
NOT_ALL = (
    "Invalid upgrade of kraft.version to 1 because not all of the voters have described "
    "themselves to the leader"
)
NOT_SUPPORTED = "Invalid upgrade of kraft.version to 1 because not all of the voters support it"


def driven(state: ElectionState = STATE) -> Driven:
    return Driven(ONE.key, (), state, LogState(voter_sets=(STATIC,)), own=ONE)


def leading(*described: Voter) -> Driven:
    """Return a leader that has committed in epoch 4 and received these descriptions of voters."""
    leader = driven()
    leader.elect()
    epoch = leader.replica.leader_epoch
    leader.ask(fetch_of(TWO.key, 1, epoch, epoch))
    assert leader.replica.high_watermark == 1
    for voter in described:
        assert respond_to(leader, UpdateVoter(voter, epoch)) == 0
    return leader


def respond_to(leader: Driven, asked: UpdateVoter) -> int:
    leader.ask(asked)
    (reply,) = [one.body for one in leader.all(Respond) if isinstance(one.body, VoterReply)]
    return reply.error_code


def sent(follower: Driven) -> list[object]:
    return [type(one.body).__name__ for one in follower.all(Send)]


def following() -> Driven:
    """Return a follower that has fetched from node 2 in epoch 4."""
    follower = driven(ElectionState(4, leader_id=2))
    assert sent(follower) == ["Fetch"]
    follower.fetched(FetchReply(0, 2, 4, -1))
    return follower


def on_response(follower: Driven, error_code: int) -> list[object]:
    correlation = next(at for at, _, body in follower.replica.sent if isinstance(body, UpdateVoter))
    reply = VoterReply(error_code, 2, 4)
    follower.handle(Replied(follower.replica.now_ms, correlation, reply))
    return sent(follower)


# A voter.


@pytest.mark.parametrize("code", [0, UnsupportedVersionError.code], ids=["taken", "by Kafka 4.0"])
def test_a_static_voter_describes_itself_once_to_a_leader(code: int) -> None:
    follower = following()
    assert [one.body for one in follower.all(Send)] == [UpdateVoter(ONE, 4)]
    assert on_response(follower, code) == ["Fetch"]
    for _ in range(5):
        follower.fetched(FetchReply(0, 2, 4, -1))
        assert sent(follower) == ["Fetch"]
        later = follower.replica.now_ms + follower.replica.config.fetch_timeout_ms
        follower.replica = follower.replica._replace(now_ms=later)


def test_rejected_description_is_sent_again_later() -> None:
    follower = following()
    assert on_response(follower, RequestTimedOutError.code) == ["Fetch"]
    follower.fetched(FetchReply(0, 2, 4, -1))
    assert sent(follower) == ["Fetch"]
    later = follower.replica.now_ms + follower.replica.config.fetch_timeout_ms
    follower.replica = follower.replica._replace(now_ms=later)
    follower.fetched(FetchReply(0, 2, 4, -1))
    assert sent(follower) == ["UpdateVoter"]


# A leader.


def test_version_and_voters_are_appended_before_the_records() -> None:
    leader = leading(THREE, TWO)
    assert leader.replica.kraft_version_problem(1) is None
    leader.handle(RAISING)
    control, data = leader.all(Append)
    assert control.keys == (KRAFT_VERSION_KEY, VOTERS_KEY)
    assert control.values[0] == bytes.fromhex("0000 0001 00")
    assert decode_voters(control.values[1]) == VOTERS
    assert data == Append(4, [b"r"])
    assert leader.replica.log.voter_set == VoterSet(3, VOTERS, 1)
    assert (leader.replica.key, leader.replica.kraft_version) == (ONE.key, 1)
    leader.handle(Appended(0, 1))
    leader.handle(Appended(0, 3))
    leader.ask(fetch_of(TWO.key, 4, 4, 4))
    assert leader.only(Committed) == Committed(3, 3, RECORDS)
    assert leader.replica.high_watermark == 4
    leader.handle(RAISING)
    assert leader.only(Append) == Append(4, [b"r"]), "it is raised once"


def test_voter_of_another_node_or_without_the_level_is_rejected() -> None:
    leader = leading()
    four = TWO._replace(key=ReplicaKey(4, bytes(range(16))))
    assert respond_to(leader, UpdateVoter(four, 4)) == VoterNotFoundError.code
    newer = TWO._replace(kraft_versions=(1, 1))
    assert respond_to(leader, UpdateVoter(newer, 4)) == InvalidRequestError.code
    assert respond_to(leader, UpdateVoter(TWO, 3)) == FencedLeaderEpochError.code
    assert respond_to(driven(), UpdateVoter(TWO, 3)) == NotLeaderOrFollowerError.code


def test_the_version_stays_until_every_voter_has_described_itself_and_supports_it() -> None:
    leader = leading(TWO)
    assert leader.replica.kraft_version_problem(1) == NOT_ALL
    older = THREE._replace(kraft_versions=(0, 0))
    assert respond_to(leader, UpdateVoter(older, 4)) == 0
    assert leader.replica.kraft_version_problem(1) == NOT_SUPPORTED
    assert respond_to(leader, UpdateVoter(THREE, 4)) == 0
    assert leader.replica.kraft_version_problem(1) is None


def test_leader_without_descriptions_of_its_epoch_does_not_raise_the_version() -> None:
    """After the decision about the request, the node lost the leadership and won it again."""
    leader = leading(TWO, THREE)
    leader.replica = leader.replica._replace(role=leading().replica.role)
    before = leader.replica.log
    leader.handle(RAISING)
    assert leader.all(InDoubt) == [InDoubt()]
    assert leader.all(Append) == []
    assert leader.replica.log == before
    assert leader.replica.can_propose


def test_epoch_of_static_voters_starts_without_voter_records() -> None:
    leader = driven()
    leader.wait_for("Prospective")
    leader.vote_of(2, granted=True)
    leader.vote_of(2, granted=True)
    assert leader.only(Append).control == LEADER_CHANGE
    assert len(leader.only(Append).values) == 1
