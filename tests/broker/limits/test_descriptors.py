"""A process with few descriptors serves many partitions and survives many connections. It rejects
requests that need another descriptor, and no partition goes offline for that reason."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_core.protocol.messages import DescribeClusterRequest
from tests.support.patience import PATIENCE_S, POLL_S, eventually
from tests.support.processes.server import Server, serving
from tests.support.wire import Connection

TOPIC = "orders"
GONE, SPARE = 10, 4
"""Number of clients that disconnect, and of descriptors that the server may still open."""


@pytest.fixture(autouse=True)
def _descriptors_of_the_clients() -> Iterator[None]:
    """Raise the limit of this process, which has the clients' ends of the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def create_topic(address: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    created = admin.create_topics([NewTopic(TOPIC, partitions)])
    created[TOPIC].result(PATIENCE_S)


def producer_of(address: str) -> Producer:
    return Producer({"bootstrap.servers": address, "linger.ms": 5})


def produce_to_each(producer: Producer, partitions: int) -> None:
    """Produce one record to each partition, with acknowledgements."""
    errors: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(str(error))

    for partition in range(partitions):
        producer.produce(TOPIC, b"value", partition=partition, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert not errors, f"{len(errors)} errors, the first: {errors[0]}"


def consume_all(address: str, partitions: int, count: int) -> None:
    """Read ``count`` records of all partitions from the start."""
    settings = {"bootstrap.servers": address, "group.id": "-", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(partitions)])
    seen: dict[int, int] = {}
    deadline = time.monotonic() + PATIENCE_S
    while sum(seen.values()) < count:
        assert time.monotonic() < deadline, f"{sum(seen.values())} of {count} records"
        for message in consumer.consume(1_000, POLL_S):
            assert message.error() is None, message.error()
            partition = message.partition()
            assert partition is not None
            seen[partition] = seen.get(partition, 0) + 1
    consumer.close()
    assert len(seen) == partitions
    assert sum(seen.values()) == count


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def open_descriptors(server: Server) -> int:
    assert server.process is not None
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


@pytest.mark.load
@pytest.mark.parametrize(("descriptors", "partitions"), [(64, 300), (256, 1_000), (1_024, 2_000)])
def test_one_client_writes_and_reads_more_partitions_than_there_are_descriptors(
    tmp_path: Path, descriptors: int, partitions: int
) -> None:
    options = ("--durability", "os")
    with serving(tmp_path / "data", *options, descriptors=descriptors) as server:
        create_topic(server.address, partitions)
        producer = producer_of(server.address)
        for _ in range(2):
            produce_to_each(producer, partitions)
        consume_all(server.address, partitions, 2 * partitions)
        assert server.stop() == 0
    with serving(tmp_path / "data", *options, descriptors=descriptors) as server:
        consume_all(server.address, partitions, 2 * partitions)


@pytest.mark.parametrize(("descriptors", "connections"), [(256, 400), (1_024, 1_200)])
def test_idle_connections_that_hold_all_descriptors_do_not_block_partitions_and_others(
    tmp_path: Path, descriptors: int, connections: int
) -> None:
    partitions = 100
    with serving(tmp_path / "data", descriptors=descriptors) as server, ExitStack() as idle:
        create_topic(server.address, partitions)
        producer = producer_of(server.address)
        produce_to_each(producer, partitions)
        sockets = [idle.enter_context(connect(server.address)) for _ in range(connections)]
        eventually(lambda: open_descriptors(server) > descriptors // 2)
        # In two rounds, each partition's file is closed in favor of another one and opened again.
        for _ in range(2):
            produce_to_each(producer, partitions)
        for connection in sockets:
            connection.close()
        consume_all(server.address, partitions, 3 * partitions)
        produce_to_each(producer_of(server.address), partitions)


def test_connections_that_waited_for_a_descriptor_do_not_keep_a_reserved_one(
    tmp_path: Path,
) -> None:
    """Each of them kept the descriptor with which it had waited, until none were left for files."""
    descriptors, reserve, waiting = 128, 16, 1
    with serving(tmp_path / "data", descriptors=descriptors) as server, ExitStack() as idle:
        admitted = descriptors - reserve - open_descriptors(server) - SPARE
        clients = [idle.enter_context(Connection(server.address)) for _ in range(2 * descriptors)]
        for gone, next_one in enumerate(clients[admitted : admitted + GONE]):
            clients[gone].close()
            next_one.ask(60, 1, DescribeClusterRequest())
        eventually(lambda: open_descriptors(server) == descriptors - reserve + waiting)


def test_serve_raises_its_descriptor_limit_to_the_hard_limit(tmp_path: Path) -> None:
    with serving(tmp_path / "data", descriptors=(100, 600)) as server:
        assert server.process is not None
        assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE) == (600, 600)
