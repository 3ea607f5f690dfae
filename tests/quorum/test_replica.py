"""One replica of a quorum as a value: a few events test each rule.

Tests of whole quorums are in tests/simulation/quorum.
"""

from typing import Any, TypeVar

import pytest

from pykafka_core.errors import (
    FencedLeaderEpochError,
    InconsistentVoterSetError,
    InvalidRequestError,
    InvalidVoterKeyError,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    SnapshotNotFoundError,
    UnknownLeaderEpochError,
    UnknownServerError,
)
from pykafka_core.protocol.messages import Message, ProducerIdsRecord
from pykafka_core.quorum.events import (
    Advanced,
    AppendFetched,
    Failed,
    InDoubt,
    InstallSnapshot,
    LeaderChanged,
    LogCleaned,
    Persist,
    Persisted,
    ReplicaEvent,
    ReplicaOutput,
    Replied,
    Request,
    Resign,
    Respond,
    Send,
    SnapshotInstalled,
    SnapshotTaken,
    StorePart,
    Tick,
    Truncate,
    Truncated,
)
from pykafka_core.quorum.log.state import EpochStart, LogState
from pykafka_core.quorum.quorum import Append, Appended, Committed, MetadataQuorum, Proposal
from pykafka_core.quorum.replica import begin
from pykafka_core.quorum.roles import NEVER, Unattached
from pykafka_core.quorum.rpc import (
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    EpochReply,
    Fetch,
    FetchReply,
    FetchSnapshot,
    SnapshotReply,
    Vote,
    VoteReply,
)
from pykafka_core.quorum.transition import HELD_MAX
from pykafka_core.quorum.values import (
    Batch,
    ElectionState,
    OffsetAndEpoch,
    QuorumConfig,
    ReplicaKey,
)

ONE, TWO, THREE = (ReplicaKey(node, bytes(15) + bytes((node,))) for node in (1, 2, 3))
OBSERVER = ReplicaKey(4, bytes(16))
VOTERS = ONE, TWO, THREE
RECORDS: list[Message] = [ProducerIdsRecord(next_producer_id=1)]
PROPOSAL = Proposal(RECORDS, [b"a"])
# Epoch 1 starts at offset 0, epoch 3 at offset 4; the end is 6.
LOG = LogState.loaded(6, (EpochStart(1, 0), EpochStart(3, 4)))
STATE = ElectionState(5)
AnyT = TypeVar("AnyT")


class Driven:
    """A replica whose writes to quorum-state complete at once."""

    def __init__(
        self,
        key: ReplicaKey = ONE,
        voters: tuple[ReplicaKey, ...] = VOTERS,
        state: ElectionState = STATE,
        log: LogState = LOG,
        **more: Any,
    ) -> None:
        self.replica, outputs = begin(key, voters, state, log, now_ms=0, seed=1, **more)
        self.persists = True
        self.outputs = self._settle(outputs)
        self.numbers = 0

    def _settle(self, outputs: list[ReplicaOutput]) -> list[ReplicaOutput]:
        for output in outputs:
            if isinstance(output, Persist) and self.persists:
                self.replica, more = self.replica.handle(Persisted())
                outputs = outputs + self._settle(more)
        return outputs

    def handle(self, event: ReplicaEvent) -> list[ReplicaOutput]:
        before = self.replica
        self.replica, outputs = before.handle(event)
        assert (self.replica, outputs) == before.handle(event), "the same event, the same outcome"
        self.outputs = self._settle(outputs)
        return self.outputs

    def ask(self, body: Body) -> list[ReplicaOutput]:
        self.numbers += 1
        return self.handle(Request(self.replica.now_ms, self.numbers, body))

    def tick(self) -> list[ReplicaOutput]:
        """Wait for the next deadline."""
        return self.handle(Tick(self.replica.deadline_ms))

    def wait_for(self, state: str) -> None:
        while self.replica.state != state:
            self.tick()

    def only(self, kind: type[AnyT]) -> AnyT:
        (found,) = self.all(kind)
        return found

    def all(self, kind: type[AnyT]) -> list[AnyT]:
        return [output for output in self.outputs if isinstance(output, kind)]

    def vote_of(self, node_id: int, *, granted: bool) -> None:
        """A node replies to the last request for a vote that was sent to it."""
        correlation = next(c for c, node, _ in self.replica.sent if node == node_id)
        reply = VoteReply(0, -1, self.replica.leader_epoch, granted)
        self.handle(Replied(self.replica.now_ms, correlation, reply))

    def elect(self) -> None:
        """Make it the leader; its first record is on disk but not committed."""
        self.wait_for("Prospective")
        self.vote_of(2, granted=True)
        self.vote_of(2, granted=True)
        assert self.replica.state == "Leader"
        self.handle(Appended(0, self.replica.log.end - 1))

    def fetched(self, reply: FetchReply | SnapshotReply) -> list[ReplicaOutput]:
        """The leader replies to the pending fetch."""
        ((correlation, _, _),) = self.replica.sent
        return self.handle(Replied(self.replica.now_ms, correlation, reply))


def vote(
    epoch: int,
    *,
    last: OffsetAndEpoch = LOG.last,
    pre_vote: bool = False,
    candidate: ReplicaKey = TWO,
) -> Vote:
    return Vote(candidate, ONE, epoch, last, pre_vote)


def follower() -> Driven:
    return Driven(state=ElectionState(5, leader_id=2))


def leader() -> Driven:
    driven = Driven()
    driven.elect()
    return driven


def fetch_of(replica: ReplicaKey, offset: int, last_epoch: int, epoch: int = 6) -> Fetch:
    return Fetch(replica, epoch, offset, last_epoch, 0)


def test_replica_implements_the_quorum_protocol() -> None:
    quorum: MetadataQuorum[ReplicaEvent, ReplicaOutput] = leader().replica
    assert (quorum.leader_id, quorum.leader_epoch, quorum.log_end_offset) == (1, 6, 7)
    assert (quorum.high_watermark, quorum.can_propose) == (0, False)


def test_a_single_voter_elects_itself_and_commits_alone() -> None:
    driven = Driven(voters=(ONE,))
    assert driven.all(LeaderChanged) == [LeaderChanged(-1, 6), LeaderChanged(1, 6)]
    assert driven.replica.state == "Leader"
    driven.handle(Appended(0, 6))
    assert driven.outputs == [Advanced(0, 5), Committed(6, 6, ())]
    driven.handle(PROPOSAL)
    assert driven.outputs == [Append(6, [b"a"])]
    assert not driven.replica.can_propose
    driven.handle(Appended(0, 7))
    assert driven.outputs == [Committed(7, 7, RECORDS)]
    assert driven.replica.deadline_ms == NEVER, "it needs nobody"


@pytest.mark.parametrize("count", [0, 8])
def test_a_quorum_has_1_to_7_voters(count: int) -> None:
    voters = tuple(ReplicaKey(node, bytes(16)) for node in range(count))
    with pytest.raises(ValueError, match=f"not {count}"):
        begin(ONE, voters, STATE, LOG, now_ms=0, seed=1)


def test_a_node_votes_once() -> None:
    with pytest.raises(ValueError, match="one node id"):
        begin(ONE, (ONE, ReplicaKey(1, bytes(16))), STATE, LOG, now_ms=0, seed=1)


# Votes (contract/replication.md#K1, #K3, #K5).


def test_vote_is_answered_after_it_is_written() -> None:
    driven = Driven()
    driven.persists = False
    driven.ask(vote(6))
    assert driven.outputs == [
        Persist(ElectionState(6)),
        Persist(ElectionState(6, -1, TWO)),
        LeaderChanged(-1, 6),
    ]
    assert driven.handle(Persisted()) == []
    assert driven.handle(Persisted()) == [Respond(1, VoteReply(0, -1, 6, True))]
    assert driven.replica.state == "Voted"


def test_a_replica_votes_once_in_an_epoch() -> None:
    driven = Driven()
    assert driven.ask(vote(6))[-1] == Respond(1, VoteReply(0, -1, 6, True))
    assert driven.ask(vote(6, candidate=THREE)) == [Respond(2, VoteReply(0, -1, 6, False))]
    assert driven.ask(vote(6)) == [Respond(3, VoteReply(0, -1, 6, True))], "the same again"
    again = Driven(state=driven.replica.election)
    assert again.ask(vote(6, candidate=THREE)) == [Respond(1, VoteReply(0, -1, 6, False))]


@pytest.mark.parametrize(
    ("last", "granted"),
    [
        (OffsetAndEpoch(6, 3), True),
        (OffsetAndEpoch(7, 3), True),
        (OffsetAndEpoch(1, 4), True),
        (OffsetAndEpoch(5, 3), False),
        (OffsetAndEpoch(100, 2), False),
    ],
)
@pytest.mark.parametrize("pre_vote", [False, True])
def test_votes_are_granted_to_logs_that_are_up_to_date(
    last: OffsetAndEpoch, granted: bool, pre_vote: bool
) -> None:
    driven = Driven()
    epoch = 5 if pre_vote else 6
    driven.ask(vote(epoch, last=last, pre_vote=pre_vote))
    assert driven.only(Respond).body == VoteReply(0, -1, epoch, granted)


def test_pre_vote_writes_nothing() -> None:
    driven = Driven()
    driven.ask(vote(5, pre_vote=True))
    assert driven.outputs == [Respond(1, VoteReply(0, -1, 5, True))]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (vote(4), FencedLeaderEpochError),
        (vote(6)._replace(candidate=OBSERVER), InconsistentVoterSetError),
        (
            vote(6)._replace(candidate=TWO._replace(directory_id=bytes(16))),
            InconsistentVoterSetError,
        ),
        (vote(6)._replace(voter=ONE._replace(directory_id=bytes(16))), InvalidVoterKeyError),
        (vote(6, last=OffsetAndEpoch(9, 6)), InvalidRequestError),
        (vote(6, last=OffsetAndEpoch(-1, 1)), InvalidRequestError),
        (vote(5, last=OffsetAndEpoch(9, 6), pre_vote=True), InvalidRequestError),
    ],
)
def test_rejected_vote_changes_nothing(asked: Vote, error: type[KafkaError]) -> None:
    driven = Driven()
    driven.ask(asked)
    assert driven.outputs == [Respond(1, VoteReply(error.code, -1, 5, False))]


def test_follower_with_an_active_leader_rejects_pre_votes() -> None:
    driven = follower()
    asked = vote(5, pre_vote=True, candidate=THREE)
    driven.ask(asked)
    assert driven.only(Respond).body == VoteReply(0, 2, 5, True)
    driven.fetched(FetchReply(0, 2, 5))
    driven.ask(asked)
    assert driven.only(Respond).body == VoteReply(0, 2, 5, False)


def test_an_epoch_rises_only_once_a_majority_would_vote() -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    assert [(send.node_id, send.body) for send in driven.all(Send)] == [
        (2, Vote(ONE, TWO, 5, LOG.last, True)),
        (3, Vote(ONE, THREE, 5, LOG.last, True)),
    ]
    driven.vote_of(2, granted=False)
    assert driven.replica.election == STATE
    driven.vote_of(3, granted=True)
    assert driven.replica.state == "Candidate"
    assert driven.only(Persist) == Persist(ElectionState(6, -1, ONE))
    assert {send.body for send in driven.all(Send)} == {
        Vote(ONE, TWO, 6, LOG.last, False),
        Vote(ONE, THREE, 6, LOG.last, False),
    }
    driven.vote_of(3, granted=True)
    assert driven.replica.state == "Leader"
    assert driven.only(Persist) == Persist(ElectionState(6, 1, ONE))
    append = driven.only(Append)
    assert (append.leader_epoch, append.control) == (6, 2)
    version_0, array_of_three, array_of_two = b"\0\0", b"\4", b"\3"
    voters = b"".join(bytes((0, 0, 0, key.node_id, 0)) for key in VOTERS)
    granting = voters[:5] + voters[10:]
    value = version_0 + b"\0\0\0\1" + array_of_three + voters + array_of_two + granting + b"\0"
    assert append.values == [value]


def test_replica_that_alone_lost_its_leader_follows_it_again() -> None:
    driven = follower()
    driven.wait_for("Prospective")
    driven.vote_of(3, granted=False)
    driven.vote_of(2, granted=False)
    assert (driven.replica.state, driven.replica.leader_id) == ("Follower", 2)
    assert driven.replica.leader_epoch == 5


def test_a_lost_election_is_followed_by_a_pause_and_a_pre_vote() -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    driven.vote_of(2, granted=True)
    driven.vote_of(2, granted=False)
    driven.vote_of(3, granted=False)
    assert driven.replica.state == "Candidate"
    driven.wait_for("Prospective")
    assert driven.replica.leader_epoch == 6
    assert all(send.body.epoch == 6 for send in driven.all(Send))


def test_node_with_another_replica_key_is_asked_once() -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    correlation = next(number for number, node, _ in driven.replica.sent if node == 3)
    error = VoteReply(InvalidVoterKeyError.code, -1, 0, False)
    assert driven.handle(Replied(driven.replica.now_ms, correlation, error)) == []
    driven.vote_of(2, granted=True)
    driven.vote_of(2, granted=True)
    assert driven.replica.state == "Leader"
    correlation = next(number for number, node, _ in driven.replica.sent if node == 3)
    begun = EpochReply(InvalidVoterKeyError.code, -1, 0)
    assert driven.handle(Replied(driven.replica.now_ms, correlation, begun)) == []
    asked = driven.replica.now_ms
    driven.ask(fetch_of(TWO, 6, 3))
    while not any(send.node_id == 3 for send in driven.all(Send)):
        driven.tick()
    assert driven.replica.now_ms == asked + 1000, "half a fetch timeout"


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (ElectionState(5, 1, ONE), "Prospective"),
        (ElectionState(5, -1, ONE), "Voted"),
        (ElectionState(5, 2, TWO), "Follower"),
        (ElectionState(5, -1, TWO), "Voted"),
        (ElectionState(5), "Unattached"),
        (ElectionState(2, 1, ONE), "Unattached"),
    ],
)
def test_restarted_replica_leads_only_in_a_later_epoch(state: ElectionState, name: str) -> None:
    driven = Driven(state=state)
    assert driven.replica.state == name
    assert driven.replica.leader_epoch == max(state.epoch, LOG.last_epoch)
    before = driven.replica.leader_epoch
    driven.wait_for("Prospective")
    driven.vote_of(3, granted=True)
    driven.vote_of(3, granted=True)
    assert (driven.replica.state, driven.replica.leader_epoch) == ("Leader", before + 1)


def test_timeouts_differ_by_the_seed() -> None:
    deadlines = {
        begin(ONE, VOTERS, STATE, LOG, now_ms=0, seed=seed)[0].deadline_ms for seed in range(50)
    }
    assert min(deadlines) >= 1000
    assert max(deadlines) < 2000
    assert len(deadlines) > 40


# Leaders (contract/replication.md#K2, #K4).


def test_records_synced_by_a_majority_are_committed_from_the_own_epoch_on() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 6, 3))
    assert driven.all(Advanced) == [], (
        "a majority has epoch 3's records; they are not of this epoch"
    )
    driven.ask(fetch_of(TWO, 7, 6))
    assert driven.all(Advanced) + driven.all(Committed) == [Advanced(0, 5), Committed(6, 6, ())]
    assert driven.only(Respond).body == FetchReply(0, 1, 6, 7), "the follower learns it at once"


def test_new_leader_sends_no_high_watermark_before_a_commit_in_its_epoch() -> None:
    """Followers may know a higher one, and those of Apache Kafka exit if it decreases."""
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 4))
    driven.elect()
    assert driven.replica.high_watermark == 4
    driven.ask(fetch_of(THREE, 6, 3)._replace(high_watermark=6))
    assert driven.only(Respond) == Respond(1, FetchReply(0, 1, 6, -1), read_from=6)
    driven.ask(fetch_of(OBSERVER, 7, 6))
    assert driven.all(Respond) == [], "there is nothing to say to one that knows less, either"
    driven.ask(fetch_of(THREE, 7, 6)._replace(high_watermark=6))
    assert [reply.body for reply in driven.all(Respond)] == [FetchReply(0, 1, 6, 7)] * 2


def test_follower_keeps_its_high_watermark_while_the_leader_has_none() -> None:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 4))
    driven.fetched(FetchReply(0, 2, 5, -1))
    assert driven.replica.high_watermark == 4
    assert driven.only(Send).body == Fetch(ONE, 5, 6, 3, 4)


def test_a_leader_counts_itself_once_it_has_synced() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(PROPOSAL)
    assert Append(6, [b"a"]) in driven.outputs
    driven.ask(fetch_of(TWO, 8, 6)._replace(high_watermark=7))
    driven.ask(fetch_of(THREE, 8, 6)._replace(high_watermark=7))
    assert driven.replica.high_watermark == 7
    driven.handle(Appended(0, 7))
    assert driven.only(Committed) == Committed(7, 7, RECORDS)
    assert [reply.body for reply in driven.all(Respond)] == [FetchReply(0, 1, 6, 8)] * 2


def test_observers_and_replaced_disks_do_not_count_for_the_majority() -> None:
    driven = leader()
    driven.ask(fetch_of(OBSERVER, 7, 6))
    driven.ask(fetch_of(TWO._replace(directory_id=bytes(16)), 7, 6))
    assert driven.replica.high_watermark == 0


def test_delayed_fetch_does_not_lower_the_progress_of_a_voter() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(PROPOSAL)
    driven.ask(fetch_of(TWO, 8, 6))
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(Appended(0, 7))
    assert driven.replica.high_watermark == 8


@pytest.mark.parametrize(
    ("fetch", "diverging"),
    [
        (fetch_of(TWO, 6, 3), None),
        (fetch_of(TWO, 0, 0), None),
        (fetch_of(TWO, 4, 1), None),
        (fetch_of(TWO, 5, 1), OffsetAndEpoch(4, 1)),
        (fetch_of(TWO, 5, 2), OffsetAndEpoch(4, 1)),
        (fetch_of(TWO, 9, 5), OffsetAndEpoch(6, 3)),
        (fetch_of(TWO, 9, 6), OffsetAndEpoch(7, 6)),
    ],
)
def test_diverging_log_gets_the_point_of_divergence(
    fetch: Fetch, diverging: OffsetAndEpoch | None
) -> None:
    driven = leader()
    driven.ask(fetch)
    reply = driven.only(Respond)
    assert reply.body == FetchReply(0, 1, 6, -1, diverging=diverging)
    assert reply.read_from == (None if diverging else fetch.offset)


@pytest.mark.parametrize(
    ("fetch", "needs_snapshot"),
    [
        (fetch_of(TWO, 0, 0), True),
        (fetch_of(TWO, 3, 1), True),
        (fetch_of(TWO, 4, 2), True),
        (fetch_of(TWO, 5, 1), False),
        (fetch_of(TWO, 4, 1), False),
        (fetch_of(TWO, 6, 3), False),
    ],
)
def test_log_that_ends_before_the_log_start_of_the_leader_gets_a_snapshot_id(
    fetch: Fetch, needs_snapshot: bool
) -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    snapshot_id = OffsetAndEpoch(4, 1)
    driven.handle(LogCleaned(snapshot_id))
    driven.ask(fetch)
    body = driven.only(Respond).body
    assert isinstance(body, FetchReply)
    assert body.snapshot_id == (snapshot_id if needs_snapshot else None)


@pytest.mark.parametrize(
    ("fetch", "error"),
    [
        (fetch_of(TWO, 6, 3, epoch=5), FencedLeaderEpochError),
        (fetch_of(TWO, 6, 3, epoch=7), UnknownLeaderEpochError),
        (fetch_of(TWO, -1, 3), InvalidRequestError),
        (fetch_of(TWO, 6, 7), InvalidRequestError),
    ],
)
def test_fetch_of_another_epoch_is_rejected(fetch: Fetch, error: type[KafkaError]) -> None:
    driven = leader()
    driven.ask(fetch)
    assert driven.outputs[0] == Respond(1, FetchReply(error.code, 1, 6))


def test_follower_answers_a_fetch_with_the_id_of_its_leader() -> None:
    driven = follower()
    driven.ask(fetch_of(THREE, 6, 3, epoch=5))
    assert driven.outputs == [Respond(1, FetchReply(NotLeaderOrFollowerError.code, 2, 5))]


def test_fetch_waits_for_new_records_or_a_higher_high_watermark() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.ask(fetch_of(TWO, 7, 6)._replace(high_watermark=7))
    assert driven.all(Respond) == []
    driven.handle(PROPOSAL)
    assert driven.only(Respond) == Respond(2, FetchReply(0, 1, 6, 7), read_from=7)
    driven.handle(Appended(0, 7))
    driven.ask(fetch_of(TWO, 8, 6)._replace(high_watermark=8))
    began = driven.replica.now_ms
    while not driven.all(Respond):
        driven.tick()
    assert driven.replica.now_ms == began + 500


def test_a_leader_that_no_majority_fetches_from_resigns() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    heard = driven.replica.now_ms
    driven.handle(PROPOSAL)
    driven.handle(Appended(0, 7))
    driven.wait_for("Resigned")
    assert driven.replica.now_ms == heard + 3000
    assert driven.only(InDoubt) == InDoubt()
    assert driven.only(LeaderChanged) == LeaderChanged(-1, 6)
    assert {send.body for send in driven.all(Send)} == {EndQuorumEpoch(1, 6, (TWO, THREE))}


def hanging() -> Driven:
    """A leader whose disk hangs, while both followers fetch."""
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(PROPOSAL)
    began = driven.replica.now_ms
    while driven.replica.state == "Leader":
        assert driven.replica.now_ms - began <= 2000
        driven.ask(fetch_of(TWO, 8, 6))
        driven.ask(fetch_of(THREE, 8, 6))
        driven.tick()
    assert driven.replica.now_ms == began + 2000
    return driven


def test_a_leader_whose_append_hangs_resigns_although_all_voters_fetch() -> None:
    driven = hanging()
    assert driven.only(InDoubt) == InDoubt()
    assert {send.body for send in driven.all(Send)} == {EndQuorumEpoch(1, 6, (TWO, THREE))}


def test_a_replica_stands_for_election_once_its_disk_has_its_log() -> None:
    """A leader that resigned because its disk is slow was elected again."""
    driven = hanging()
    for correlation, _, _ in driven.replica.sent:
        reply = EpochReply(0, -1, driven.replica.leader_epoch)
        driven.handle(Replied(driven.replica.now_ms, correlation, reply))
    assert driven.replica.deadline_ms == NEVER
    driven.handle(Tick(driven.replica.now_ms + 60_000))
    assert driven.replica.state == "Resigned"
    driven.handle(Appended(0, 7))
    driven.tick()
    assert driven.replica.state == "Prospective"


def test_a_leader_whose_appends_end_in_time_leads_on() -> None:
    driven = leader()
    for offset in range(7, 12):
        driven.ask(fetch_of(TWO, offset, 6))
        driven.handle(PROPOSAL)
        driven.ask(fetch_of(TWO, offset + 1, 6))
        driven.handle(Tick(driven.replica.now_ms + 1900))
        driven.handle(Appended(0, offset))
    assert driven.replica.state == "Leader"


def test_the_age_of_an_append_begins_when_it_is_proposed() -> None:
    """The control thread was busy before: the value's time was that of an earlier event."""
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    began = driven.replica.now_ms + 1900
    driven.replica = driven.replica.at(began)
    driven.handle(PROPOSAL)
    driven.ask(fetch_of(TWO, 8, 6))
    driven.ask(fetch_of(THREE, 8, 6))
    driven.handle(Tick(began + 1999))
    assert driven.replica.state == "Leader"
    driven.handle(Tick(began + 2000))
    assert driven.replica.state == "Resigned"


def test_no_timer_expires_by_an_event_without_a_time() -> None:
    driven = leader()
    came = driven.replica.now_ms
    driven.replica = driven.replica.at(came + 5000)
    driven.handle(Tick(came + 2999))
    assert driven.replica.state == "Leader"
    driven.handle(Tick(came + 3000))
    assert driven.replica.state == "Resigned"


@pytest.mark.parametrize("end", [None, 7], ids=["gone", "slow"])
def test_a_leader_whose_append_hangs_leads_on_if_one_of_three_voters_is_faster(
    end: int | None,
) -> None:
    """No majority without its disk is faster: it resigned, and was elected again, by turns."""
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(PROPOSAL)
    for _ in range(5):
        driven.ask(fetch_of(TWO, 8, 6))
        if end is not None:
            driven.ask(fetch_of(THREE, end, 6))
        driven.handle(Tick(driven.replica.now_ms + 1000))
    assert driven.replica.state == "Leader"
    for _ in range(5):
        assert driven.replica.state == "Leader"
        driven.ask(fetch_of(TWO, 8, 6))
        driven.ask(fetch_of(THREE, 8, 6))
        driven.handle(Tick(driven.replica.now_ms + 1000))
    assert driven.replica.state == "Resigned"


def write_slowly(driven: Driven, ends_after_ms: int, acks_after_ms: int) -> None:
    """Commit a batch whose append takes so long, and for both followers so long."""
    before, began = driven.replica.log.end, driven.replica.now_ms
    driven.handle(PROPOSAL)
    for after_ms in sorted({*range(0, ends_after_ms, 1000), acks_after_ms, ends_after_ms}):
        driven.handle(Tick(began + after_ms))
        for key in (TWO, THREE):
            driven.ask(fetch_of(key, before + (after_ms >= acks_after_ms), 6))
    driven.handle(Appended(0, before))


def ready() -> Driven:
    """A leader that has committed its first record."""
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.ask(fetch_of(THREE, 7, 6))
    return driven


@pytest.mark.parametrize(("acks_after_ms", "leads"), [(1000, False), (1100, True), (1900, True)])
def test_leader_resigns_only_if_other_disks_take_half_of_the_time(
    acks_after_ms: int, leads: bool
) -> None:
    """Where all disks were slow, each leader resigned, and few elections succeeded."""
    driven = ready()
    write_slowly(driven, 2100, acks_after_ms)
    assert (driven.replica.state == "Leader") == leads


def test_leader_whose_append_hangs_resigns_after_twice_the_time_of_the_others() -> None:
    driven = ready()
    began = driven.replica.now_ms
    driven.handle(PROPOSAL)
    driven.handle(Tick(began + 1500))
    for key in (TWO, THREE):
        driven.ask(fetch_of(key, 8, 6))
    driven.handle(Tick(began + 2999))
    assert driven.replica.state == "Leader"
    for key in (TWO, THREE):
        driven.ask(fetch_of(key, 8, 6))
    driven.handle(Tick(began + 3000))
    assert driven.replica.state == "Resigned"


def test_batches_that_follow_each_other_are_not_one_slow_append() -> None:
    driven = ready()
    for _ in range(5):
        write_slowly(driven, 900, 10)
    assert driven.replica.state == "Leader"


def test_each_resignation_for_a_slow_disk_takes_longer_until_an_append_is_quick() -> None:
    """Syncs of varying duration look like a slow disk: no leader stayed."""
    driven = ready()
    driven.replica = driven.replica._replace(stalls=1)
    write_slowly(driven, 3900, 10)
    assert driven.replica.state == "Leader"
    write_slowly(driven, 499, 10)
    assert driven.replica.stalls == 0
    driven.replica = driven.replica._replace(stalls=1)
    write_slowly(driven, 500, 10)
    write_slowly(driven, 4000, 10)
    assert (driven.replica.state, driven.replica.stalls) == ("Resigned", 2)


def test_resignation_without_followers_does_not_count_as_a_slow_disk() -> None:
    driven = ready()
    driven.handle(PROPOSAL)
    driven.wait_for("Resigned")
    assert driven.replica.stalls == 0


def test_a_candidate_waits_for_its_own_vote() -> None:
    """A write that took longer than an election raised the epoch forever."""
    driven = Driven()
    driven.replica, _ = begin(ONE, (ONE,), STATE, LOG, now_ms=0, seed=1)
    assert (driven.replica.state, driven.replica.deadline_ms) == ("Candidate", NEVER)
    driven.handle(Tick(10_000))
    driven.handle(Persisted())
    assert (driven.replica.state, driven.replica.leader_epoch) == ("Leader", 6)


def test_a_candidate_whose_own_vote_was_slow_waits_for_the_other_votes() -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    driven.persists = False
    driven.vote_of(2, granted=True)
    assert (driven.replica.state, driven.replica.deadline_ms) == ("Candidate", NEVER)
    driven.replica = driven.replica.at(10_000)
    driven.handle(Persisted())
    driven.handle(Tick(10_001))
    assert {node_id for _, node_id, _ in driven.replica.sent} == {2, 3}
    driven.vote_of(2, granted=True)
    assert driven.replica.state == "Leader"


@pytest.mark.parametrize("is_state", [False, True], ids=["log", "quorum-state"])
def test_a_follower_whose_disk_was_slow_fetches_again_before_an_election(is_state: bool) -> None:
    """A fetch timeout passed while it wrote, and it had to send no Fetch."""
    driven = follower()
    if is_state:
        driven.persists = False
        driven.ask(BeginQuorumEpoch(3, ONE, 6))
    else:
        driven.fetched(FetchReply(0, 2, 5, 8, batches=(Batch(6, 5, 1, b"x"),)))
    driven.replica = driven.replica.at(10_000)
    driven.handle(Persisted() if is_state else Appended(0, 6))
    assert isinstance(driven.all(Send)[0].body, Fetch)
    driven.handle(Tick(10_001))
    assert driven.replica.state == "Follower"
    driven.tick()
    assert driven.replica.state == "Prospective"


@pytest.mark.parametrize("left", ["resigned", "gone"])
@pytest.mark.parametrize("is_state", [False, True], ids=["log", "quorum-state"])
def test_end_of_a_write_does_not_delay_the_election_after_a_resignation(
    is_state: bool, left: str
) -> None:
    """It waited for another one to two election timeouts."""
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 8, batches=() if is_state else (Batch(6, 5, 1, b"x"),)))
    driven.persists = not is_state
    if is_state:
        driven.ask(BeginQuorumEpoch(2, ONE, 6))
    if left == "resigned":
        driven.ask(EndQuorumEpoch(2, driven.replica.leader_epoch, (ONE, THREE)))
    else:
        driven.replica = driven.replica._replace(sent=((99, 2, fetch_of(ONE, 6, 5)),))
        driven.handle(Replied(driven.replica.now_ms, 99, None, is_gone=True))
    driven.replica = driven.replica.at(1000)
    driven.handle(Persisted() if is_state else Appended(0, 6))
    assert driven.replica.deadline_ms <= 1000
    driven.handle(Tick(1000))
    assert driven.replica.state == "Prospective"


def test_response_of_the_leader_ends_the_turn_to_stand() -> None:
    """A refused connection was a mistake: the leader works."""
    driven = follower()
    ((correlation, _, asked),) = driven.replica.sent
    driven.handle(Replied(driven.replica.now_ms, correlation, None, is_gone=True))
    driven.replica = driven.replica._replace(sent=((99, 2, asked),))
    reply = FetchReply(0, 2, 5, 8, batches=(Batch(6, 5, 1, b"x"),))
    driven.handle(Replied(driven.replica.now_ms, 99, reply))
    driven.replica = driven.replica.at(10_000)
    driven.handle(Appended(0, 6))
    driven.handle(Tick(10_001))
    assert driven.replica.state == "Follower"


def test_one_of_two_voters_leads_on_while_its_append_hangs() -> None:
    """The other one cannot be elected without its vote."""
    driven = Driven(voters=(ONE, TWO))
    driven.elect()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(PROPOSAL)
    for _ in range(5):
        driven.handle(Tick(driven.replica.now_ms + 1000))
        driven.ask(fetch_of(TWO, 8, 6))
    assert driven.replica.state == "Leader"


def test_a_fetch_that_waited_in_a_queue_shows_the_time_at_which_it_came() -> None:
    driven = leader()
    came = driven.replica.now_ms
    driven.handle(Tick(came + 2900))
    driven.handle(Request(came + 100, 99, fetch_of(TWO, 7, 6)))
    driven.handle(Tick(came + 3099))
    assert driven.replica.state == "Leader"
    driven.handle(Tick(came + 3100))
    assert driven.replica.state == "Resigned"


def test_later_epoch_ends_a_leader_whose_batch_is_then_in_doubt() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.ask(fetch_of(THREE, 7, 6)._replace(high_watermark=7))
    driven.handle(PROPOSAL)
    driven.ask(fetch_of(THREE, 8, 6)._replace(high_watermark=7))
    driven.ask(BeginQuorumEpoch(2, ONE, 7))
    waiting, begun = driven.all(Respond)
    assert waiting.body == FetchReply(NotLeaderOrFollowerError.code, 2, 7)
    assert begun.body == EpochReply(0, 2, 7)
    assert driven.only(InDoubt) == InDoubt()
    assert (driven.replica.state, driven.replica.leader_id) == ("Follower", 2)


def test_proposal_to_a_replica_that_cannot_propose_is_a_bug() -> None:
    for driven in (follower(), leader()):
        with pytest.raises(AssertionError):
            driven.replica.handle(PROPOSAL)


def test_resigning_leader_names_the_longest_logs_first() -> None:
    driven = leader()
    driven.ask(fetch_of(THREE, 7, 6))
    driven.handle(Resign())
    assert {send.body for send in driven.all(Send)} == {EndQuorumEpoch(1, 6, (THREE, TWO))}
    best = Driven(key=THREE, state=ElectionState(6, 1))
    best.ask(EndQuorumEpoch(1, 6, (THREE, TWO)))
    assert best.replica.deadline_ms == 0
    next_best = Driven(key=TWO, state=ElectionState(6, 1))
    next_best.ask(EndQuorumEpoch(1, 6, (THREE, TWO)))
    assert 0 < next_best.replica.deadline_ms <= 200


def test_a_leader_that_answers_no_fetch_does_not_end_the_pre_vote_of_a_follower() -> None:
    """A leader whose append hangs sends BeginQuorumEpoch to followers that miss its records."""
    driven = follower()
    driven.wait_for("Prospective")
    driven.ask(BeginQuorumEpoch(2, ONE, 5))
    assert driven.only(Respond).body == EpochReply(0, 2, 5)
    assert driven.replica.state == "Prospective"
    driven.ask(BeginQuorumEpoch(2, ONE, 6))
    assert driven.replica.state == "Follower"


def test_a_replica_without_a_leader_follows_one_during_its_pre_vote() -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    driven.ask(BeginQuorumEpoch(2, ONE, driven.replica.leader_epoch))
    assert driven.replica.state == "Follower"


def test_of_the_answers_that_are_held_back_the_last_ones_are_kept() -> None:
    """Peers repeat requests that time out, for as long as the disk hangs."""
    driven = Driven()
    driven.persists = False
    for _ in range(HELD_MAX + 500):
        driven.ask(vote(9))
    assert len(driven.replica.held) == HELD_MAX
    driven.handle(Persisted())
    driven.handle(Persisted())
    numbers = [reply.number for reply in driven.all(Respond)]
    assert numbers == list(range(501, HELD_MAX + 501))


@pytest.mark.parametrize("change", ["deposed", "cleaned", "none"])
def test_delayed_reply_reads_only_records_that_still_exist(change: str) -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    driven.vote_of(2, granted=True)
    driven.persists = False
    driven.vote_of(2, granted=True)
    driven.ask(fetch_of(TWO, 4, 1))
    assert driven.all(Respond) == [], "it waits for quorum-state"
    writes = 1
    if change == "deposed":
        driven.ask(BeginQuorumEpoch(3, ONE, 7))
        writes = 2
    elif change == "cleaned":
        driven.replica = driven.replica._replace(high_watermark=5)
        driven.handle(LogCleaned(OffsetAndEpoch(5, 3)))
    for _ in range(writes):
        driven.handle(Persisted())
    assert driven.all(Respond)[0].read_from == (4 if change == "none" else None)


# Followers (contract/replication.md#K6).


def test_follower_reports_its_synced_records_and_takes_the_high_watermark_of_the_leader() -> None:
    driven = follower()
    assert driven.only(Send).body == Fetch(ONE, 5, 6, 3, 0)
    batches = Batch(6, 5, 1, b"x"), Batch(7, 5, 2, b"y")
    driven.fetched(FetchReply(0, 2, 5, 8, batches=batches))
    assert driven.outputs == [AppendFetched(batches), Advanced(0, 5)]
    driven.handle(Appended(0, 6))
    assert driven.outputs[0] == Advanced(6, 7)
    assert driven.only(Send).body == Fetch(ONE, 5, 9, 5, 8)


@pytest.mark.parametrize(
    "batches",
    [
        (Batch(7, 5, 1, b""),),
        (Batch(6, 5, 1, b""), Batch(8, 5, 1, b"")),
        (Batch(6, 6, 1, b""),),
        (Batch(6, 2, 1, b""),),
        (Batch(6, 5, 0, b""),),
    ],
)
def test_batches_that_do_not_continue_the_log_are_not_written(batches: tuple[Batch, ...]) -> None:
    driven = follower()
    before = driven.replica.log
    driven.fetched(FetchReply(0, 2, 5, batches=batches))
    assert driven.outputs == []
    assert driven.replica.log == before


@pytest.mark.parametrize(
    ("diverging", "end"),
    [
        (OffsetAndEpoch(5, 3), 5),
        (OffsetAndEpoch(2, 1), 2),
        (OffsetAndEpoch(9, 2), 4),
        (OffsetAndEpoch(0, 0), 0),
    ],
)
def test_a_follower_truncates_by_epoch(diverging: OffsetAndEpoch, end: int) -> None:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 6, diverging))
    assert driven.outputs == [Truncate(end)]
    assert driven.replica.high_watermark == 0, "what comes with a diverging epoch is not used"
    driven.handle(Truncated())
    last_epoch = 3 if end > 4 else 1 if end else 0
    assert driven.only(Send).body == Fetch(ONE, 5, end, last_epoch, 0)


def test_committed_records_are_never_truncated() -> None:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 6))
    assert driven.replica.high_watermark == 6
    driven.fetched(FetchReply(0, 2, 5, 6, OffsetAndEpoch(5, 3)))
    assert driven.outputs == [Failed(UnknownServerError.code)]
    assert driven.replica.deadline_ms == NEVER
    assert driven.ask(vote(9)) == []


SNAPSHOT_ID = OffsetAndEpoch(20, 4)


def test_fetches_use_the_configured_sizes() -> None:
    config = QuorumConfig(fetch_bytes_max=500, snapshot_bytes_max=70)
    driven = Driven(state=ElectionState(5, leader_id=2), config=config)
    assert driven.only(Send).body == Fetch(ONE, 5, 6, 3, 0, bytes_max=500)
    driven.fetched(FetchReply(0, 2, 5, 30, snapshot_id=SNAPSHOT_ID))
    assert driven.only(Send).body == FetchSnapshot(ONE, 5, SNAPSHOT_ID, 0, bytes_max=70)


def part(position: int, content: bytes, size: int = 10, epoch: int = 5) -> SnapshotReply:
    return SnapshotReply(0, 2, epoch, SNAPSHOT_ID, size, position, content)


def downloading() -> Driven:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 30, snapshot_id=SNAPSHOT_ID))
    assert driven.only(Send).body == FetchSnapshot(ONE, 5, SNAPSHOT_ID, 0)
    return driven


def test_snapshot_replaces_the_log_and_the_image() -> None:
    """contract/replication.md#K6."""
    driven = downloading()
    driven.fetched(part(0, b"abcdef"))
    assert driven.only(StorePart) == StorePart(SNAPSHOT_ID, 0, b"abcdef")
    assert driven.only(Send).body == FetchSnapshot(ONE, 5, SNAPSHOT_ID, 6)
    driven.fetched(part(6, b"ghij"))
    assert driven.outputs == [StorePart(SNAPSHOT_ID, 6, b"ghij"), InstallSnapshot(SNAPSHOT_ID)]
    assert driven.replica.deadline_ms == NEVER, "it does not stand for election meanwhile"
    driven.handle(SnapshotInstalled(SNAPSHOT_ID))
    assert driven.only(Send).body == Fetch(ONE, 5, 20, 4, 20)
    assert (driven.replica.log.start, driven.replica.high_watermark) == (20, 20)


@pytest.mark.parametrize(
    "reply",
    [
        SnapshotReply(SnapshotNotFoundError.code, 2, 5),
        part(6, b"later"),
        part(0, b""),
        part(0, b"longer than all of it"),
        part(0, b"a")._replace(snapshot_id=OffsetAndEpoch(20, 5)),
        part(0, b"a")._replace(snapshot_id=None),
        part(0, b"a", size=2**62),
    ],
)
def test_unexpected_part_ends_the_download(reply: SnapshotReply) -> None:
    driven = downloading()
    assert driven.fetched(reply) == []
    driven.tick()
    assert isinstance(driven.only(Send).body, Fetch)


def test_change_of_the_snapshot_size_ends_the_download() -> None:
    driven = downloading()
    driven.fetched(part(0, b"abc"))
    assert driven.fetched(part(3, b"d", size=11)) == []


def test_missing_part_is_requested_again() -> None:
    driven = downloading()
    driven.fetched(part(0, b"abc"))
    ((correlation, _, _),) = driven.replica.sent
    driven.handle(Replied(driven.replica.now_ms, correlation, None))
    driven.tick()
    assert driven.only(Send).body == FetchSnapshot(ONE, 5, SNAPSHOT_ID, 3)


def test_each_part_counts_as_a_reply_of_the_leader() -> None:
    driven = downloading()
    before = driven.replica.deadline_ms
    driven.handle(Tick(before - 1))
    driven.fetched(part(0, b"abc"))
    assert driven.replica.deadline_ms == before - 1 + 2000
    driven.wait_for("Prospective")


def test_new_leader_is_first_asked_for_records() -> None:
    """The bytes of its snapshot may differ from those of the previous leader."""
    driven = downloading()
    driven.fetched(part(0, b"abc"))
    driven.ask(BeginQuorumEpoch(3, ONE, 6))
    assert driven.only(Send).body == Fetch(ONE, 6, 6, 3, 0)


def test_snapshot_that_could_not_be_installed_is_fetched_again_later() -> None:
    driven = downloading()
    driven.fetched(part(0, b"abc", size=3))
    assert driven.handle(SnapshotInstalled(None)) == []
    log = driven.replica.log._replace(voter_sets=LOG.voter_sets)
    assert (log, driven.replica.high_watermark) == (LOG, 0)
    driven.tick()
    assert isinstance(driven.only(Send).body, Fetch)
    assert driven.replica.now_ms == 1000


def test_snapshot_below_the_high_watermark_is_not_fetched() -> None:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 6))
    assert driven.replica.high_watermark == 6
    driven.fetched(FetchReply(0, 2, 5, 6, snapshot_id=OffsetAndEpoch(5, 3)))
    assert driven.outputs == []
    driven.tick()
    assert isinstance(driven.only(Send).body, Fetch)


def test_leader_serves_parts_in_its_epoch_and_counts_them_as_fetches() -> None:
    driven = leader()
    for epoch, error in ((5, FencedLeaderEpochError), (7, UnknownLeaderEpochError)):
        driven.ask(FetchSnapshot(TWO, epoch, SNAPSHOT_ID, 0))
        assert driven.only(Respond).body == SnapshotReply(error.code, 1, 6)
    for _ in range(10):
        driven.handle(Tick(driven.replica.now_ms + 1400))
        driven.ask(FetchSnapshot(TWO, 6, SNAPSHOT_ID, 3))
        assert driven.only(Respond).body == SnapshotReply(0, 1, 6, SNAPSHOT_ID)
        assert driven.replica.state == "Leader"


def test_follower_redirects_a_download_to_its_leader() -> None:
    driven = follower()
    driven.ask(FetchSnapshot(THREE, 5, SNAPSHOT_ID, 0))
    assert driven.only(Respond).body == SnapshotReply(NotLeaderOrFollowerError.code, 2, 5)


def test_empty_log_gets_the_newest_snapshot() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    newest = OffsetAndEpoch(6, 3)
    driven.handle(SnapshotTaken(newest))
    driven.ask(fetch_of(THREE, 0, 0))
    body = driven.only(Respond).body
    assert isinstance(body, FetchReply)
    assert body.snapshot_id == newest
    driven.handle(LogCleaned(OffsetAndEpoch(4, 1)))
    driven.ask(fetch_of(THREE, 3, 1))
    assert isinstance(body := driven.only(Respond).body, FetchReply)
    assert body.snapshot_id == newest


def test_records_below_the_newest_snapshot_are_committed_at_the_start() -> None:
    log = LogState.loaded(6, (EpochStart(1, 0), EpochStart(3, 4)), newest=OffsetAndEpoch(5, 3))
    assert Driven(log=log).replica.high_watermark == 5


def test_follower_without_replies_stands_for_election_after_the_fetch_timeout() -> None:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5))
    driven.wait_for("Prospective")
    assert driven.replica.now_ms == 2000


@pytest.mark.parametrize(
    "snapshot_id",
    [OffsetAndEpoch(20, 6), OffsetAndEpoch(20, -7), OffsetAndEpoch(2**63 - 1, 4)],
)
def test_impossible_snapshot_is_not_fetched(snapshot_id: OffsetAndEpoch) -> None:
    driven = follower()
    driven.fetched(FetchReply(0, 2, 5, 30, snapshot_id=snapshot_id))
    assert driven.all(Send) == []


def test_replica_that_installs_a_snapshot_grants_no_pre_votes() -> None:
    driven = downloading()
    driven.fetched(part(0, b"abcdefghij"))
    assert driven.all(InstallSnapshot)
    driven.ask(EndQuorumEpoch(2, 5, ()))
    asked = vote(5, last=OffsetAndEpoch(40, 5), pre_vote=True, candidate=THREE)
    driven.ask(asked)
    assert driven.only(Respond).body == VoteReply(0, 2, 5, False)
    driven.handle(SnapshotInstalled(SNAPSHOT_ID))
    assert driven.replica.deadline_ms == driven.replica.now_ms, "the leader has resigned"
    driven.ask(asked)
    assert driven.only(Respond).body == VoteReply(0, 2, 5, True)


def test_followers_of_a_stopped_leader_stand_for_election_one_after_the_other() -> None:
    for key, waits in ((ONE, False), (THREE, True)):
        driven = Driven(key=key, state=ElectionState(5, leader_id=2))
        driven.fetched(FetchReply(0, 2, 5))
        asked = vote(5, pre_vote=True, candidate=ONE if key is THREE else THREE)
        asked = asked._replace(voter=key)
        driven.ask(asked)
        assert driven.only(Respond).body == VoteReply(0, 2, 5, False)
        ((correlation, _, _),) = driven.replica.sent
        driven.handle(Replied(driven.replica.now_ms, correlation, None, is_gone=True))
        deadline_ms = driven.replica.deadline_ms
        assert (deadline_ms > driven.replica.now_ms) == waits
        assert deadline_ms <= driven.replica.now_ms + 200
        driven.ask(asked)
        assert driven.only(Respond).body == VoteReply(0, 2, 5, True)


def test_failed_disk_ends_the_replica() -> None:
    driven = leader()
    driven.ask(fetch_of(TWO, 7, 6))
    driven.handle(PROPOSAL)
    driven.handle(Appended(KafkaStorageError.code, -1))
    assert driven.outputs == [InDoubt(), Failed(KafkaStorageError.code)]
    assert driven.ask(vote(9)) == []


def test_failed_write_of_the_quorum_state_ends_the_replica() -> None:
    driven = Driven()
    driven.persists = False
    driven.ask(vote(6))
    assert driven.handle(Persisted(KafkaStorageError.code)) == [Failed(KafkaStorageError.code)]


# Observers (contract/replication.md#K11).


def test_an_observer_asks_any_voter_for_the_leader_and_fetches_from_it() -> None:
    driven = Driven(key=OBSERVER, state=ElectionState(0), log=LogState())
    assert driven.replica.state == "Observer"
    send = driven.only(Send)
    assert send.node_id in (1, 2, 3)
    driven.fetched(FetchReply(FencedLeaderEpochError.code, 3, 6))
    assert driven.only(Send)[1:3] == (3, Fetch(OBSERVER, 6, 0, 0, 0))
    assert driven.only(Persist) == Persist(ElectionState(6, 3))
    driven.ask(Vote(TWO, OBSERVER, 7, OffsetAndEpoch(9, 6), False))
    assert driven.only(Respond).body == VoteReply(InvalidVoterKeyError.code, 3, 6, False)


def test_observer_without_replies_searches_for_another_leader() -> None:
    driven = Driven(key=OBSERVER, state=ElectionState(6, 3), log=LogState())
    ((_, node_id, _),) = driven.replica.sent
    assert node_id == 3
    driven.handle(Tick(2000))
    assert (driven.replica.leader_epoch, driven.replica.deadline_ms) == (6, NEVER)
    assert driven.only(Send).body == Fetch(OBSERVER, 6, 0, 0, 0)


def test_observer_whose_leader_stopped_asks_the_others_after_a_pause() -> None:
    """If a broker waited for the fetch timeout, a session of the same length would expire."""
    driven = Driven(key=OBSERVER, state=ElectionState(6, 3), log=LogState())
    ((correlation, node_id, _),) = driven.replica.sent
    driven.handle(Replied(driven.replica.now_ms, correlation, None, is_gone=True))
    asked: set[int] = set()
    for _ in range(50):
        driven.handle(Tick(driven.replica.now_ms + driven.replica.config.retry_backoff_ms))
        for correlation, node_id, _ in driven.replica.sent:
            asked.add(node_id)
            driven.handle(Replied(driven.replica.now_ms, correlation, None, is_gone=True))
        assert isinstance(driven.replica.role, Unattached)
    assert asked == {1, 2, 3}


def test_leader_ignores_replies_to_earlier_requests() -> None:
    driven = Driven()
    driven.wait_for("Prospective")
    old = driven.replica.sent[0][0]
    driven.vote_of(3, granted=True)
    before = driven.replica
    driven.handle(Replied(before.now_ms, old, VoteReply(0, -1, 5, True)))
    assert driven.replica == before
