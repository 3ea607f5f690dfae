"""Queries to another coordinator in one request, and the results in its response (KIP-890)."""

import pytest

from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerResponse
from pykafka_core.broker.runtime.interbroker.question_batch import request_of, results_of
from pykafka_core.handlers.outcome import ShardResult, TransactionQuery
from pykafka_core.protocol import decode_request, encode_message
from pykafka_core.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

ADD = TransactionQuery("transfers", 7, 3, [("orders", 0), ("orders", 1)], True)
VERIFY = TransactionQuery("copies", 8, 0, [("orders", 0)], False)
BOTH = [ADD, VERIFY]


@pytest.mark.parametrize("version", [4, 5])
def test_request_verifies_many_transactions(version: int) -> None:
    body = bytes(encode_message(request_of(BOTH), version))
    read = decode_request(24, version, body)
    assert isinstance(read, AddPartitionsToTxnRequest)
    add, verify = read.transactions
    assert (add.transactional_id, add.producer_id, add.producer_epoch) == ("transfers", 7, 3)
    assert (add.verify_only, verify.verify_only) == (False, True)
    assert [(one.name, one.partitions) for one in add.topics] == [("orders", [0, 1])]


def respond(**codes: list[int]) -> BrokerResponse:
    results = [
        AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
            transactional_id=name,
            topic_results=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                    name="orders",
                    results_by_partition=[
                        AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=code
                        )
                        for index, code in enumerate(of_one)
                    ],
                )
            ],
        )
        for name, of_one in codes.items()
    ]
    return BrokerResponse(0, AddPartitionsToTxnResponse(results_by_transaction=results))


def test_each_verification_gets_the_codes_of_its_partitions() -> None:
    first, second = results_of(BOTH, respond(copies=[120], transfers=[0, 3]))
    assert first == ShardResult(0, {("orders", 0): 0, ("orders", 1): 3})
    assert second == ShardResult(120)


def test_partition_that_was_not_attempted_is_retried() -> None:
    """Kafka's coordinator rejects all partitions of a transaction if one of them is not in its
    metadata yet.
    """
    (first, _) = results_of(BOTH, respond(copies=[0], transfers=[3, 55]))
    assert first == ShardResult(0, {("orders", 0): 3, ("orders", 1): 13})


def test_transaction_missing_from_the_reply_is_retried() -> None:
    assert list(results_of(BOTH, respond(copies=[0]))) == [
        ShardResult(13),
        ShardResult(0, {("orders", 0): 0}),
    ]


@pytest.mark.parametrize(("code", "reported"), [(31, 48), (15, 15)])
def test_error_of_a_reply_applies_to_all_transactions(code: int, reported: int) -> None:
    refused = BrokerResponse(0, AddPartitionsToTxnResponse(error_code=code))
    assert list(results_of(BOTH, refused)) == [ShardResult(reported)] * 2


def test_missing_reply_is_retriable() -> None:
    for code in (7, 8, 13, 35):
        assert list(results_of(BOTH, BrokerResponse(code, None))) == [ShardResult(13)] * 2
