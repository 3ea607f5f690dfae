"""A quorum of one voter as a value: single cases, then random histories and a model of the log."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykafka_core.protocol.messages import Message, ProducerIdsRecord
from pykafka_core.quorum.log.records import leader_change
from pykafka_core.quorum.log.voters import KRAFT_VERSION_KEY, VOTERS_KEY, decode_voters
from pykafka_core.quorum.quorum import (
    Append,
    Appended,
    BeginEpoch,
    Committed,
    Output,
    Proposal,
    Rejected,
)
from pykafka_core.quorum.single_voter import SingleVoter
from pykafka_core.quorum.values import ReplicaKey, Voter

KAFKA_STORAGE_ERROR = 56
START = SingleVoter(leader_id=7, leader_epoch=3, log_end_offset=10)
RECORDS: list[Message] = [ProducerIdsRecord(next_producer_id=number) for number in range(2)]
PROPOSAL = Proposal(RECORDS, [b"a", b"b"])


def test_batch_is_committed_after_its_append() -> None:
    proposed, outputs = START.handle(PROPOSAL)
    assert outputs == (Append(3, [b"a", b"b"]),)
    assert (proposed.can_propose, proposed.high_watermark) == (False, 10)
    after, outputs = proposed.handle(Appended(0, 10))
    assert outputs == (Committed(10, 11, RECORDS),)
    assert (after.can_propose, after.high_watermark, after.log_end_offset) == (True, 12, 12)


def test_rejected_batch_changes_nothing() -> None:
    proposed, _ = START.handle(PROPOSAL)
    assert proposed.handle(Appended(KAFKA_STORAGE_ERROR, -1)) == (
        START,
        (Rejected(KAFKA_STORAGE_ERROR),),
    )


@pytest.mark.parametrize("event", [PROPOSAL, BeginEpoch()])
def test_only_one_batch_is_in_flight(event: Proposal | BeginEpoch) -> None:
    proposed, _ = START.handle(PROPOSAL)
    with pytest.raises(AssertionError):
        proposed.handle(event)


def test_unexpected_append_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        START.handle(Appended(0, 10))


def test_epoch_starts_as_in_kafka() -> None:
    _, (command,) = START.handle(BeginEpoch())
    assert command == Append(3, [leader_change(7, [7], [7])], (b"\0\0\0\x02",), 2)
    # The control record in a log that Kafka 4.2.1 wrote with node id 1.
    kafka = bytes.fromhex("0000" + "00000001" + "02" + "0000000100" + "02" + "0000000100" + "00")
    assert leader_change(1, [1], [1]) == kafka


RAISING = Proposal(RECORDS, [b"a", b"b"], 1)
NAMED = START._replace(directory_id=bytes(range(16)))


def test_voter_is_appended_before_the_records() -> None:
    raising, (control,) = NAMED.handle(RAISING)
    assert isinstance(control, Append)
    assert (control.keys, control.control) == ((KRAFT_VERSION_KEY, VOTERS_KEY), 5)
    assert decode_voters(control.values[1]) == (Voter(ReplicaKey(7, bytes(range(16)))),)
    assert (raising.kraft_version, raising.can_propose) == (0, False)
    proposed, outputs = raising.handle(Appended(0, 10))
    assert outputs == (Committed(10, 11, ()), Append(3, [b"a", b"b"]))
    assert (proposed.kraft_version, proposed.can_propose, proposed.high_watermark) == (1, False, 12)
    after, outputs = proposed.handle(Appended(0, 12))
    assert outputs == (Committed(12, 13, RECORDS),)
    assert after.can_propose
    again, outputs = after.handle(RAISING)
    assert outputs == (Append(3, [b"a", b"b"]),), "it is raised once"
    assert again.kraft_version_problem(1) is None


def test_a_version_that_cannot_be_appended_is_not_raised() -> None:
    raising, _ = NAMED.handle(RAISING)
    assert raising.handle(Appended(KAFKA_STORAGE_ERROR, -1)) == (
        NAMED,
        (Rejected(KAFKA_STORAGE_ERROR),),
    )


def test_records_that_cannot_be_appended_leave_the_version_raised() -> None:
    raising, _ = NAMED.handle(RAISING)
    proposed, _ = raising.handle(Appended(0, 10))
    after, outputs = proposed.handle(Appended(KAFKA_STORAGE_ERROR, -1))
    assert outputs == (Rejected(KAFKA_STORAGE_ERROR),)
    assert (after.kraft_version, after.can_propose, after.log_end_offset) == (1, True, 12)


class Histories(RuleBasedStateMachine):
    """Epochs, proposals and appends in any valid order; appends succeed, fail or leave a gap."""

    @initialize(end=st.integers(0, 2**40), epoch=st.integers(1, 2**31 - 1))
    def begin(self, end: int, epoch: int) -> None:
        self.quorum = SingleVoter(1, epoch, end)
        self.epoch = epoch
        self.log_end = end
        self.asked: Append | None = None
        self.records: list[Message] = []
        self.committed_end = end

    def handle(self, event: Proposal | BeginEpoch | Appended) -> Output:
        before = self.quorum
        self.quorum, outputs = before.handle(event)
        assert (self.quorum, outputs) == before.handle(event), "the same event, the same outcome"
        (output,) = outputs
        return output

    @precondition(lambda self: self.asked is None)
    @rule(count=st.integers(1, 5))
    def propose(self, count: int) -> None:
        assert self.quorum.can_propose
        self.records = [ProducerIdsRecord(next_producer_id=n) for n in range(count)]
        output = self.handle(Proposal(self.records, [b"value"] * count))
        assert isinstance(output, Append)
        assert (output.leader_epoch, output.control) == (self.epoch, None)
        self.asked = output

    @precondition(lambda self: self.asked is None)
    @rule()
    def begin_epoch(self) -> None:
        self.records = []
        output = self.handle(BeginEpoch())
        assert isinstance(output, Append)
        self.asked = output

    @precondition(lambda self: self.asked is not None)
    @rule(gap=st.integers(0, 3))
    def append(self, gap: int) -> None:
        assert self.asked is not None
        first = self.log_end + gap
        self.log_end = first + len(self.asked.values)
        self.asked = None
        output = self.handle(Appended(0, first))
        assert isinstance(output, Committed)
        assert output[:2] == (first, self.log_end - 1)
        assert list(output.records) == self.records
        assert first >= self.committed_end, "no offset is committed twice"
        self.committed_end = self.log_end

    @precondition(lambda self: self.asked is not None)
    @rule(code=st.integers(1, 130))
    def fail(self, code: int) -> None:
        self.asked = None
        assert self.handle(Appended(code, -1)) == Rejected(code)

    @invariant()
    def what_is_committed_is_in_the_log(self) -> None:
        assert self.quorum.high_watermark == self.committed_end
        assert self.quorum.high_watermark <= self.quorum.log_end_offset <= self.log_end
        assert self.quorum.can_propose == (self.asked is None)
        assert self.quorum.leader_epoch == self.epoch


TestHistories = Histories.TestCase
