"""Directories of Apache Kafka 4.2.1, served over the network: the responses are those of Kafka
(contract/kafka.md#22, #30, #31).
"""

import hashlib
import shutil
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from tests.broker.storage.test_golden_directories import GOLDEN, expected_partitions
from tests.support.wire import Connection

ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
BYTES_MAX = 1 << 25


@pytest.fixture(params=["clean", "killed"], scope="module")
def golden(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def connection(golden: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    data = tmp_path_factory.mktemp(golden) / "data"
    shutil.copytree(GOLDEN / golden / "data", data, copy_function=shutil.copyfile)
    asked_at_ms = next(expected_partitions(golden))[2]["asked_at_ms"]
    with (
        Broker(data, listeners="127.0.0.1:0", clock=asked_at_ms) as broker,
        Connection(broker.bootstrap_servers) as connection,
    ):
        yield connection


def list_offsets(
    connection: Connection, name: str, index: int, timestamp: int, isolation: str
) -> Any:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[partition])
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=ISOLATION[isolation], topics=[topic], timeout_ms=1000
    )
    return connection.ask(2, 11, request).topics[0].partitions[0]


def test_list_offsets_replies_as_kafka_did(golden: str, connection: Connection) -> None:
    for name, index, facts in expected_partitions(golden):
        for timestamp, isolation, error, offset, found, epoch in facts["list_offsets"]:
            response = list_offsets(connection, name, index, timestamp, isolation)
            where = f"{name}-{index} at {timestamp}, {isolation}"
            on_response = (response.error_code, response.offset, response.timestamp)
            assert on_response == (error, offset, found), where
            # A start begins a new epoch: responses about the log end have our epoch, not Kafka's.
            if epoch != facts["current_leader_epoch"]:
                assert response.leader_epoch == epoch, where


def test_offset_for_leader_epoch_replies_as_kafka_did(golden: str, connection: Connection) -> None:
    for name, index, facts in expected_partitions(golden):
        # A start begins a new epoch at the log end, as Kafka's next start did: only earlier epochs
        # can be compared.
        begun = facts["before_kill"] if golden == "killed" else facts
        ended = begun["current_leader_epoch"] + (golden == "killed")
        for epoch, error, response_epoch, end_offset in facts["offset_for_leader_epoch"]:
            if epoch >= ended:
                continue
            partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                partition=index, current_leader_epoch=-1, leader_epoch=epoch
            )
            topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                topic=name, partitions=[partition]
            )
            request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
            response = connection.ask(23, 4, request).topics[0].partitions[0]
            found = (response.error_code, response.leader_epoch, response.end_offset)
            assert found == (error, response_epoch, end_offset), f"{name}-{index}, epoch {epoch}"


@pytest.mark.parametrize("isolation", list(ISOLATION))
def test_fetch_returns_the_bytes_that_kafka_returned(
    golden: str, connection: Connection, isolation: str
) -> None:
    for name, index, facts in expected_partitions(golden):
        expected = facts[f"fetch_{isolation}"]
        partition = FetchRequest.FetchPartition(
            partition=index,
            fetch_offset=expected["offset"],
            partition_max_bytes=BYTES_MAX,
            current_leader_epoch=-1,
        )
        topic = FetchRequest.FetchTopic(
            topic_id=uuid.UUID(facts["topic_id"]).bytes, partitions=[partition]
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=BYTES_MAX,
            isolation_level=ISOLATION[isolation],
            session_epoch=-1,
            topics=[topic],
        )
        response = connection.ask(1, 17, request).responses[0].partitions[0]
        records = response.records or b""
        found: dict[str, Any] = {
            "error": response.error_code,
            "offset": expected["offset"],
            "bytes": len(records),
            "sha256": hashlib.sha256(records).hexdigest(),
            "aborted_transactions": None
            if response.aborted_transactions is None
            else [
                {"ProducerId": txn.producer_id, "FirstOffset": txn.first_offset}
                for txn in response.aborted_transactions
            ],
        }
        assert found == expected, f"{name}-{index}"
