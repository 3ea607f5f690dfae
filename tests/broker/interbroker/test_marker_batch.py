"""The grouping of markers by leader and request, and the error codes for the coordinator."""

import pytest

from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerResponse
from pykafka_core.broker.runtime.interbroker.marker_batch import (
    MarkedPart,
    codes_of,
    divide,
    request_of,
)
from pykafka_core.coordinator.shard import TransactionEnd
from pykafka_core.metadata.image.image import NO_LEADER, Partition, Topic
from pykafka_core.protocol import decode_request, encode_message
from pykafka_core.protocol.messages import Message, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from pykafka_core.types import GROUP_TOPIC

SELF = 1
COMMIT = TransactionEnd(7, 3, 4, True, 2)
ABORT = TransactionEnd(8, 0, 4, False, 0)


def topic(name: str, *leaders: int) -> Topic:
    partitions = {
        index: Partition((1, 2, 3), (1, 2, 3), leader, 0, 0) for index, leader in enumerate(leaders)
    }
    return Topic(name, bytes(16), partitions)


def test_each_partition_is_sent_to_its_leader() -> None:
    topics = {
        "orders": topic("orders", SELF, 2, 3, NO_LEADER),
        GROUP_TOPIC: topic(GROUP_TOPIC, SELF, 2),
    }
    wanted = [("orders", index) for index in range(5)] + [("gone", 0)]
    wanted += [(GROUP_TOPIC, 0), (GROUP_TOPIC, 1)]
    divided = divide(topics, wanted, SELF)
    assert divided.logs == [("orders", 0)]
    assert divided.groups == [0]
    assert divided.by_node == {2: [("orders", 1), (GROUP_TOPIC, 1)], 3: [("orders", 2)]}
    assert divided.leaderless == [("orders", 3)]
    assert divided.gone == [("orders", 4), ("gone", 0)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_request_has_one_marker_for_each_transaction(version: int) -> None:
    parts = [
        MarkedPart(COMMIT, [("orders", 1), ("payments", 0)]),
        MarkedPart(ABORT, [("orders", 1)]),
        MarkedPart(COMMIT, [("orders", 2)]),
    ]
    body = bytes(encode_message(request_of(parts), version))
    read = decode_request(27, version, body)
    assert isinstance(read, WriteTxnMarkersRequest)
    commit, abort = read.markers
    named = {one.name: one.partition_indexes for one in commit.topics}
    assert named == {"orders": [1, 2], "payments": [0]}
    assert (commit.producer_id, commit.producer_epoch, commit.coordinator_epoch) == (7, 3, 4)
    assert (commit.transaction_result, abort.transaction_result) == (True, False)
    assert commit.transaction_version == (2 if version == 2 else 0)
    assert [one.partition_indexes for one in abort.topics] == [[1]]


def response(codes: dict[tuple[int, str, int], int]) -> Message:
    markers = [
        WriteTxnMarkersResponse.WritableTxnMarkerResult(
            producer_id=producer_id,
            topics=[
                WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                    name=name,
                    partitions=[
                        WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                            partition_index=index, error_code=code
                        )
                    ],
                )
            ],
        )
        for (producer_id, name, index), code in codes.items()
    ]
    return WriteTxnMarkersResponse(markers=markers)


PARTS = [MarkedPart(COMMIT, [("orders", 1), ("orders", 2)]), MarkedPart(ABORT, [("orders", 1)])]


def test_codes_of_each_transaction_are_those_of_its_partitions() -> None:
    written = response({(8, "orders", 1): 52, (7, "orders", 2): 19, (7, "orders", 1): 0})
    assert list(codes_of(PARTS, BrokerResponse(0, written))) == [[0, 19], [52]]


@pytest.mark.parametrize("code", [3, 100])
def test_partition_unknown_to_its_leader_is_retried(code: int) -> None:
    """The leader's metadata may lag behind: only the coordinator's own metadata shows whether the
    partition was deleted.
    """
    written = response({(7, "orders", 1): code, (7, "orders", 2): 0, (8, "orders", 1): 0})
    assert list(codes_of(PARTS, BrokerResponse(0, written))) == [[6, 0], [0]]


def test_a_log_whose_format_has_no_transactions_needs_no_marker() -> None:
    written = response({(7, "orders", 1): 43, (7, "orders", 2): 0, (8, "orders", 1): 0})
    assert list(codes_of(PARTS, BrokerResponse(0, written))) == [[0, 0], [0]]


def test_missing_results_are_errors() -> None:
    assert list(codes_of(PARTS, BrokerResponse(13, None))) == [[13, 13], [13]]
    assert list(codes_of(PARTS, BrokerResponse(0, response({(7, "orders", 1): 0})))) == [
        [0, -1],
        [-1],
    ]
    assert list(codes_of(PARTS, BrokerResponse(0, WriteTxnMarkersRequest(markers=[])))) == [
        [2, 2],
        [2],
    ]
