"""Time until a broker with a million committed offsets can serve its groups after a start."""

import time
from pathlib import Path

from bench.client import Connection, frame
from bench.conftest import Noted
from bench.members import OFFSET_COMMIT, find_coordinator
from pykafka_core import Broker
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

GROUPS = PARTITIONS = 1000


def test_a_million_offsets_load(tmp_path: Path, noted: Noted) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("topic", partitions=PARTITIONS)
        find_coordinator(broker.bootstrap_servers)
        without = _seconds_to_start(broker.bootstrap_servers)
        with Connection(broker.bootstrap_servers) as connection:
            for number in range(GROUPS):
                _commit(connection, f"group-{number}")
    begun = time.perf_counter()
    with Broker(tmp_path, durability="os") as broker:
        served = time.perf_counter()
        seconds = _seconds_to_start(broker.bootstrap_servers)
    noted("until a broker with a million offsets serves", served - begun, "s")
    noted("until its groups are there after that", seconds, "s")
    noted("offsets loaded", GROUPS * PARTITIONS / (seconds - without), "records/s")


def _seconds_to_start(bootstrap_servers: str) -> float:
    begun = time.perf_counter()
    find_coordinator(bootstrap_servers)
    return time.perf_counter() - begun


def _commit(connection: Connection, group_id: str) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="topic",
        partitions=[
            partition(partition_index=index, committed_offset=index, committed_metadata="")
            for index in range(PARTITIONS)
        ],
    )
    request = OffsetCommitRequest(group_id=group_id, topics=[topic])
    response = decode_response(*OFFSET_COMMIT, connection.exchange(frame(OFFSET_COMMIT, request)))
    assert isinstance(response, OffsetCommitResponse)
    assert {row.error_code for row in response.topics[0].partitions} == {0}
