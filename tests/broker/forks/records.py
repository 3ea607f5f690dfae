"""Records by our own codec: librdkafka's threads do not survive a fork."""

from typing import Any

from pykafka_core._core import build_batch
from pykafka_core.protocol.messages import FetchRequest, ProduceRequest
from tests.support.patience import PATIENCE_MS
from tests.support.wire import Connection

PRODUCE, FETCH = 0, 1


def produce(connection: Connection, topic: str, value: bytes) -> int:
    """Append one record to partition 0; return its offset."""
    batch = build_batch([(None, value)], timestamp_default=1)
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=PATIENCE_MS, topic_data=[data])
    row: Any = connection.ask(PRODUCE, 12, request).responses[0].partition_responses[0]
    assert row.error_code == 0, row
    return int(row.base_offset)


def fetch(connection: Connection, topic: str) -> bytes:
    """Return the batches of partition 0."""
    partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    by_name = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    request = FetchRequest(max_bytes=1 << 20, session_epoch=-1, topics=[by_name])
    row: Any = connection.ask(FETCH, 12, request).responses[0].partitions[0]
    assert row.error_code == 0, row
    return bytes(row.records)
