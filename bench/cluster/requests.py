"""Metadata and Produce on raw sockets, so that backoffs of a client are not measured."""

import time
from collections.abc import Sequence

from bench.client import DESCRIBE_LOG_DIRS, METADATA, PRODUCE, Connection, frame, produce
from bench.peers import raw
from pykafka_core.cli.client import wire
from pykafka_core.cli.client.describe_quorum import describe_quorum
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)

NO_ERROR, NOBODY = 0, -1
RESPONSE_S, BETWEEN_ROUNDS_S = 30.0, 0.002
Broker = MetadataResponse.MetadataResponseBroker
Partition = MetadataResponse.MetadataResponsePartition


def metadata(address: str, *topics: str, patience_s: float = RESPONSE_S) -> MetadataResponse:
    """Return one broker's metadata of the brokers and of some topics.

    Raises:
        OSError: The broker does not respond.
    """
    wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    with Connection(address, patience_s) as connection:
        response = decode_response(*METADATA, connection.exchange(frame(METADATA, request)))
    assert isinstance(response, MetadataResponse)
    return response


def partitions(address: str, topic: str, patience_s: float = RESPONSE_S) -> Sequence[Partition]:
    """Return the partitions of a topic in one broker's metadata; empty if it is unknown.

    Raises:
        OSError: The broker does not respond.
    """
    (found,) = metadata(address, topic, patience_s=patience_s).topics
    return found.partitions if found.error_code == NO_ERROR else []


def replica_bytes(address: str, topic: str) -> int:
    """Return the size of one broker's replica of partition 0, without reserved space.

    DescribeLogDirs returns it.

    Raises:
        OSError: The broker does not respond.
    """
    wanted = DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=[0])
    with Connection(address, RESPONSE_S) as connection:
        asked = frame(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=[wanted]))
        response = decode_response(*DESCRIBE_LOG_DIRS, connection.exchange(asked))
    assert isinstance(response, DescribeLogDirsResponse)
    topics = (found for log_dir in response.results for found in log_dir.topics)
    return sum(partition.partition_size for found in topics for partition in found.partitions)


def controller(address: str) -> int:
    """Return the active controller known to one broker, or -1; Metadata would name any broker.

    Raises:
        OSError: The broker does not respond.
    """
    host, _, port = address.rpartition(":")
    with wire.Connection(host, int(port)) as connection:
        found = describe_quorum(connection).partition
    return NOBODY if found is None else found.leader_id


class Writer:
    """Writes one record after another with acks=all to the leader of partition 0.

    After a failed write, it requests the leader from the nodes in turn until a write succeeds.

    Attributes:
        leader: The node that accepted the last record.
    """

    def __init__(self, addresses: Sequence[str], topic: str, patience_s: float = 0.5) -> None:
        self.leader = NOBODY
        self._addresses, self._topic, self._patience_s = addresses, topic, patience_s
        self._frame = produce(topic, 0, raw.batch(1, 100), acks=-1)
        self._connection: Connection | None = None

    def write(self) -> float:
        """Write a record; return the time of its acknowledgement, by `time.monotonic`."""
        while True:
            for address in self._addresses:
                try:
                    if self._connection is None:
                        self._connect(address)
                    if self._is_taken():
                        return time.monotonic()
                except OSError:
                    pass
                self.close()
            time.sleep(BETWEEN_ROUNDS_S)

    def close(self) -> None:
        """Close the connection to the leader."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connect(self, asked: str) -> None:
        known = metadata(asked, self._topic, patience_s=self._patience_s)
        at = {broker.node_id: f"{broker.host}:{broker.port}" for broker in known.brokers}
        leaders = [partition.leader_id for topic in known.topics for partition in topic.partitions]
        if not leaders or leaders[0] not in at:
            raise ConnectionError("the partition has no leader")
        self.leader = leaders[0]
        self._connection = Connection(at[self.leader], self._patience_s)

    def _is_taken(self) -> bool:
        if self._connection is None:
            return False
        response = decode_response(*PRODUCE, self._connection.exchange(self._frame))
        assert isinstance(response, ProduceResponse)
        return response.responses[0].partition_responses[0].error_code == NO_ERROR
