from itertools import count

import pytest

from pykafka_core.quorum.quorum import Committed, Rejected
from pykafka_core.quorum.single_voter import SingleVoter, leader_change


@pytest.fixture
def quorum() -> SingleVoter:
    tokens = count(1)
    return SingleVoter(node_id=7, leader_epoch=3, log_end_offset=10, new_token=lambda: next(tokens))


def test_a_batch_is_committed_when_the_log_says_so(quorum: SingleVoter) -> None:
    command = quorum.propose([b"a", b"b"])
    assert (command.leader_epoch, command.values, command.control) == (3, [b"a", b"b"], None)
    assert (quorum.can_propose(), quorum.high_watermark) == (False, 10)
    assert quorum.appended(command.token, 0, 10) == Committed(10, 11)
    assert (quorum.can_propose(), quorum.high_watermark, quorum.log_end_offset) == (True, 12, 12)


def test_a_rejected_batch_leaves_everything_as_it_was(quorum: SingleVoter) -> None:
    command = quorum.propose([b"a"])
    assert quorum.appended(command.token, 56, -1) == Rejected(56)
    assert (quorum.can_propose(), quorum.high_watermark) == (True, 10)


def test_a_token_of_something_else_is_not_an_answer(quorum: SingleVoter) -> None:
    command = quorum.propose([b"a"])
    assert quorum.appended(command.token + 1, 0, 10) is None
    assert not quorum.can_propose()


def test_only_one_batch_is_in_flight(quorum: SingleVoter) -> None:
    quorum.propose([b"a"])
    with pytest.raises(AssertionError):
        quorum.propose([b"b"])


def test_an_epoch_begins_as_kafkas_does(quorum: SingleVoter) -> None:
    command = quorum.begin_epoch()
    assert (command.key, command.control) == (b"\0\0\0\x02", 2)
    # The control record of Kafka 4.2.1 in a log of its own, with node id 1.
    kafka = bytes.fromhex("0000" + "00000001" + "02" + "0000000100" + "02" + "0000000100" + "00")
    assert leader_change(1) == kafka
