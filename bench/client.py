"""A plain client with one connection: it sends encoded frames and receives responses; the caller
measures the times.
"""

from pykafka_core import protocol
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.connection import TIMEOUT_S, encode_frame
from pykafka_core.protocol.messages import (
    DescribeConfigsRequest,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    Message,
    ProduceRequest,
    ProduceResponse,
)

PRODUCE, FETCH, METADATA, INIT_PRODUCER_ID = (0, 8), (1, 11), (3, 8), (22, 1)
DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = (32, 2), (35, 1)
"""API keys and versions: the last versions without flexible headers and bodies."""


def frame(api: tuple[int, int], request: Message) -> bytes:
    """Return an encoded request with correlation id 1."""
    return encode_frame(*api, request, client_id="bench")


def produce(topic: str, partition: int, records: bytes, *, acks: int = 1) -> bytes:
    """Return a frame that appends one encoded batch."""
    data = ProduceRequest.PartitionProduceData(index=partition, records=records)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    return frame(PRODUCE, ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics))


def fetch(topic: str, partition: int, offset: int, size: int, *, max_wait_ms: int = 1000) -> bytes:
    """Return a frame that reads about ``size`` bytes, or waits for the first record."""
    part = FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=size
    )
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[part])]
    return frame(FETCH, FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics))


def init_producer_id() -> bytes:
    """Return a frame that Python handles; one in a thousand writes to the metadata log."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    return frame(INIT_PRODUCER_ID, request)


def describe_config(topic: str) -> bytes:
    """Return a frame that Python handles: it requests one setting of a topic."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=["retention.ms"]
    )
    return frame(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource]))


class Connection(protocol.Connection):
    """A connection for frames of `frame`."""

    def __init__(self, bootstrap_servers: str, patience_s: float = TIMEOUT_S) -> None:
        super().__init__(bootstrap_servers, timeout_s=patience_s)

    def receive_body(self) -> bytes:
        """Return the body of the next response; see `receive_frame`."""
        response = self.receive_frame()
        assert response[:4] == b"\0\0\0\1"
        return response[4:]

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame; return the body of its response."""
        self.send_frame(frame)
        return self.receive_body()


def check_produced(body: bytes) -> int:
    """Return the base offset; an error code fails an assertion."""
    response = decode_response(*PRODUCE, body)
    assert isinstance(response, ProduceResponse)
    partition = response.responses[0].partition_responses[0]
    assert partition.error_code == 0, partition.error_code
    return int(partition.base_offset)


def check_fetched(body: bytes) -> bytes:
    """Return the record batches; an error code fails an assertion."""
    response = decode_response(*FETCH, body)
    assert isinstance(response, FetchResponse)
    partition = response.responses[0].partitions[0]
    assert partition.error_code == 0, partition.error_code
    return bytes(partition.records or b"")
