"""A node with partitions of a transaction sends a query to the transaction's coordinator on another
node (KIP-890).
"""

from typing import cast

import pytest

from pykafka_core._core import VerifyTransaction
from pykafka_core.broker.runtime.coordinators.verification import RETRY_NS_MAX
from pykafka_core.broker.runtime.interbroker.question_batch import ADD_PARTITIONS_TO_TXN
from pykafka_core.protocol import decode_request, encode_message
from pykafka_core.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC
from tests.handlers.foreign_brokers import commit
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import TOPIC, topic_id
from tests.handlers.transaction_requests import ID, commit_offsets, transactional_broker
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import Sent

PEER = (ADD_PARTITIONS_TO_TXN.purpose, "node-2", 9092)
PRODUCER = (7, 3)
TOKEN = 5


def broker_without_transactions() -> SimulatedBroker:
    """Return a broker in a cluster whose node 2 leads all partitions of `__transaction_state`."""
    broker = transactional_broker()
    end_point = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="node-2", port=9092)
    register = RegisterBrokerRecord(
        broker_id=2, incarnation_id=bytes(16), end_points=[end_point], fenced=False
    )
    topic = broker.image.topics.by_name[TRANSACTION_TOPIC]
    moved = (
        PartitionChangeRecord(
            topic_id=topic.topic_id, partition_id=index, replicas=[2], isr=[2], leader=2
        )
        for index in topic.partitions
    )
    commit(broker, register, *moved)
    broker.core.peers.add(PEER)
    return broker


def verify(broker: SimulatedBroker, token: int = TOKEN, name: str = ID, add: bool = True) -> None:
    """Add the event of a produce request that starts a transaction in partitions 0 and 1."""
    places = [(topic_id(broker), index) for index in (0, 1)]
    now_ns = broker.core.clock_ns
    broker.core.push(VerifyTransaction(token, name, *PRODUCER, places, add, now_ns))
    broker.run()


def sent(broker: SimulatedBroker) -> tuple[Sent, AddPartitionsToTxnRequest]:
    """Return the only request in flight."""
    (one,) = broker.core.sent.values()
    decoded = decode_request(24, one.api_version, bytes(one.body))
    return one, cast("AddPartitionsToTxnRequest", decoded)


def respond(broker: SimulatedBroker, *codes: int) -> None:
    """Respond with one code for each transaction of the request."""
    asked, request = sent(broker)
    of = AddPartitionsToTxnResponse
    results = [
        of.AddPartitionsToTxnResult(
            transactional_id=one.transactional_id,
            topic_results=[
                of.AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        of.AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=code
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in one.topics
            ],
        )
        for one, code in zip(request.transactions, codes, strict=True)
    ]
    response = of(results_by_transaction=results)
    broker.core.reply(asked.token, bytes(encode_message(response, asked.api_version)))
    broker.run()


@pytest.mark.parametrize("add", [True, False])
def test_node_of_the_coordinator_verifies_all_partitions(add: bool) -> None:
    broker = broker_without_transactions()
    verify(broker, add=add)
    asked, request = sent(broker)
    assert asked.peer == PEER
    (one,) = request.transactions
    assert (one.transactional_id, one.verify_only) == (ID, not add)
    assert (one.producer_id, one.producer_epoch) == PRODUCER
    assert [(topic.name, topic.partitions) for topic in one.topics] == [(TOPIC, [0, 1])]
    respond(broker, 0)
    assert broker.core.verdicts[TOKEN] == [0, 0]


def test_verifications_during_a_request_are_sent_together_one_for_each_transaction() -> None:
    broker = broker_without_transactions()
    for token, name in enumerate((ID, "a", "b", "a")):
        verify(broker, token, name)
    respond(broker, 0)
    assert [one.transactional_id for one in sent(broker)[1].transactions] == ["a", "b"]
    respond(broker, 0, 120)
    assert [one.transactional_id for one in sent(broker)[1].transactions] == ["a"]
    respond(broker, 90)
    assert broker.core.verdicts == {0: [0, 0], 1: [0, 0], 2: [120, 120], 3: [90, 90]}


def test_ending_transaction_is_verified_again() -> None:
    broker = broker_without_transactions()
    verify(broker)
    respond(broker, 51)
    assert TOKEN not in broker.core.verdicts
    pass_ms(broker, RETRY_NS_MAX // 1_000_000)
    respond(broker, 0)
    assert broker.core.verdicts[TOKEN] == [0, 0]


def test_unreachable_coordinator_fails_the_verification() -> None:
    """The producer gets NOT_ENOUGH_REPLICAS, and retries."""
    broker = broker_without_transactions()
    broker.core.peers.clear()
    verify(broker)
    assert broker.core.verdicts[TOKEN] == [13, 13]


def test_node_that_no_longer_leads_the_coordinator_fails_the_verification() -> None:
    broker = broker_without_transactions()
    verify(broker)
    respond(broker, 16)
    assert broker.core.verdicts[TOKEN] == [16, 16]


def send_offsets(broker: SimulatedBroker) -> int:
    """Send a TxnOffsetCommit of one partition, whose response follows that of the coordinator."""
    of = TxnOffsetCommitRequest
    row = of.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = of(
        transactional_id=ID,
        group_id="g",
        producer_id=PRODUCER[0],
        producer_epoch=PRODUCER[1],
        topics=[of.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
    )
    number = broker.send(request, 5)
    broker.run()
    return number


@pytest.mark.parametrize(
    ("code", "reported"), [(0, 0), (13, 14), (3, 15), (16, 16), (90, 47), (120, 120)]
)
def test_offsets_are_committed_if_the_other_coordinator_agrees(code: int, reported: int) -> None:
    broker = broker_without_transactions()
    request = send_offsets(broker)
    _, asked = sent(broker)
    assert asked.transactions[0].topics[0].name == GROUP_TOPIC
    respond(broker, code)
    response = broker.response(request)
    assert isinstance(response, TxnOffsetCommitResponse)
    assert [row.error_code for row in response.topics[0].partitions] == [reported]


def test_offset_commit_does_not_wait_for_an_unreachable_coordinator() -> None:
    broker = broker_without_transactions()
    broker.core.peers.clear()
    assert commit_offsets(broker, PRODUCER, {0: 5}, 5) == [14]
