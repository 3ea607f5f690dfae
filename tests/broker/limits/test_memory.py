"""`memory_max` limits requests that never end, and other requests are still served."""

import gc
import socket
import struct
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer

from bench.bounds.attacks import CREATE_TOPICS, connected, receive
from pykafka_core import Broker
from pykafka_core.errors import ConfigurationError
from pykafka_core.protocol.connection import encode_frame
from pykafka_core.protocol.messages import CreateTopicsRequest
from tests.support.patience import PATIENCE_S, eventually

MIB = 1 << 20


class Unfinished:
    """A client that sends 60 MiB of a request of 64 MiB, as fast as the broker reads."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.socket.sendall(struct.pack(">i", 64 * MIB))
        self.socket.setblocking(False)
        self.left = 60 * MIB

    def push(self) -> None:
        try:
            while self.left:
                self.left -= self.socket.send(bytes(min(self.left, MIB)))
        except BlockingIOError:
            pass


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_unfinished_requests_stay_below_the_ceiling_and_others_are_served() -> None:
    with Broker(memory_max=16 * MIB) as broker, ExitStack() as sockets:
        broker.create_topic("orders")
        before = resident_bytes()
        clients = [Unfinished(broker.bootstrap_servers) for _ in range(4)]
        for client in clients:
            sockets.enter_context(client.socket)

        def only_one_went_on() -> bool:
            for client in clients:
                client.push()
            return broker.statistics()["connections_muted"] == 3 and any(
                not client.left for client in clients
            )

        eventually(only_one_went_on)
        # At most half of the limit, and one more frame, which is always admitted.
        eventually(lambda: broker.statistics()["input_held_bytes"] > 60 * MIB)
        assert broker.statistics()["input_held_bytes"] < (8 + 64) * MIB
        assert resident_bytes() - before < 120 * MIB
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
        for _ in range(8):
            producer.produce("orders", bytes(900_000))
            assert producer.flush(PATIENCE_S) == 0
        # Each client that disconnects frees memory for the next one.
        for client in clients:
            client.socket.close()
        eventually(
            lambda: (
                broker.statistics()["input_held_bytes"] < 2 * MIB
                and broker.statistics()["connections_muted"] == 0
            )
        )


def test_queued_bytes_below_the_largest_request_are_rejected() -> None:
    """As in Kafka 4.2.1: the limit must allow one request; 0 or less means no limit."""
    name, largest = "queued.max.request.bytes", "socket.request.max.bytes"
    for queued in (1, 104_857_599):
        with pytest.raises(ConfigurationError, match=name):
            Broker(config={name: queued})
    with pytest.raises(ConfigurationError, match=name):
        Broker(config={name: 999, largest: 1000})
    Broker(config={name: 1000, largest: 1000}).close()
    for unlimited in (0, -1, -5):
        Broker(config={name: unlimited}).close()


def test_rejected_request_releases_its_memory_without_the_collector() -> None:
    topic = CreateTopicsRequest.CreatableTopic
    refused = [topic(name=f"t{n}", num_partitions=0, replication_factor=1) for n in range(5_000)]
    request = CreateTopicsRequest(topics=refused, timeout_ms=1_000)
    gc.collect()
    gc.disable()
    try:
        with Broker(memory_max=16 * MIB) as broker:
            for _ in range(3):
                with connected(broker.bootstrap_servers) as connection:
                    connection.sendall(encode_frame(CREATE_TOPICS, 7, request))
                    response = receive(connection, CREATE_TOPICS, 7)
                    assert {topic.error_code for topic in response.topics} == {37}
            eventually(lambda: broker.statistics()["requests_parked_bytes"] == 0)
    finally:
        gc.enable()
