"""A broker of ours in a cluster whose controller, and other broker, is Apache Kafka."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from bench.peers.brokers import QUICK_TO_START, ApacheKafka, reserve_port
from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import TopicAlreadyExistsError
from pykafka_core.types import id_text, random_id

OWN, THEIRS = 2, 1
PATIENCE_S = 60
NOT_BUILT = ("--feature", "share.version=0", "--feature", "streams.version=0")
"""Coordinators that our brokers do not have: the cluster must not count on them."""


@pytest.fixture
def controller() -> Iterator[socket.socket]:
    with reserve_port() as reserved:
        yield reserved


@pytest.fixture
def kafka(tmp_path: Path, controller: socket.socket) -> Iterator[ApacheKafka]:
    cluster = ("--standalone", "-t", id_text(random_id(os.urandom)), *NOT_BUILT)
    config = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    kafka = ApacheKafka(tmp_path, config, jvm=QUICK_TO_START, controller=controller, quorum=cluster)
    yield kafka
    kafka.kill()
    kafka.stop()


def member(folder: Path, kafka: ApacheKafka, controller: socket.socket) -> Broker:
    """A broker whose data directory was formatted for Kafka's cluster."""
    data = folder / "own"
    if not data.exists():
        data.mkdir()
        theirs = DataDirectory(kafka.data).identity()
        assert theirs is not None
        DataDirectory(data).create(Identity(theirs.cluster_id, OWN, random_id(os.urandom)))
    return Broker(
        data,
        listeners="PLAINTEXT://127.0.0.1:0",
        config={
            "process.roles": "broker",
            "node.id": OWN,
            "broker.heartbeat.interval.ms": 500,
            "controller.listener.names": "CONTROLLER",
            "offsets.topic.replication.factor": 1,
            "controller.quorum.voters": f"{THEIRS}@127.0.0.1:{controller.getsockname()[1]}",
        },
    )


def eventually(condition: Callable[[], bool]) -> None:
    """What the controller has committed reaches each node soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def create(bootstrap: str, name: str, *leaders: int) -> None:
    """A topic with a partition for each leader, which has it alone."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, len(leaders), replica_assignment=[[leader] for leader in leaders])
    while True:
        try:
            admin.create_topics([topic])[name].result(PATIENCE_S)
        except KafkaException as error:
            # librdkafka, when it learns of brokers while it asks the first one.
            if error.args[0].code() != KafkaError._DESTROY_BROKER:
                raise
        else:
            return


def leaders_of(bootstrap: str, name: str) -> list[int]:
    partitions = AdminClient({"bootstrap.servers": bootstrap}).list_topics(name, PATIENCE_S)
    found = partitions.topics[name].partitions
    return [found[index].leader for index in sorted(found)]


def produce(bootstrap: str, topic: str, values: Sequence[str]) -> None:
    """One to each partition in turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    partitions = len(leaders_of(bootstrap, topic))
    failed: list[object] = []
    for place, value in enumerate(values):
        producer.produce(
            topic,
            value,
            partition=place % partitions,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def consume(bootstrap: str, topic: str, count: int) -> list[str]:
    """Values of all partitions, sorted."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    partitions = range(len(leaders_of(bootstrap, topic)))
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
    values: list[str] = []
    while len(values) < count:
        messages = consumer.consume(count, PATIENCE_S)
        assert messages, f"{len(values)} of {count} came"
        for message in messages:
            assert message.error() is None
            values.append(message.value().decode())
    consumer.close()
    return sorted(values)


def test_it_leads_partitions_of_their_cluster_through_a_restart(
    tmp_path: Path, kafka: ApacheKafka, controller: socket.socket
) -> None:
    with member(tmp_path, kafka, controller) as broker:
        ours = broker.bootstrap_servers
        create(kafka.bootstrap, "orders", OWN, THEIRS, OWN)
        assert leaders_of(ours, "orders") == leaders_of(kafka.bootstrap, "orders")
        first = [f"first {number}" for number in range(30)]
        produce(ours, "orders", first)
        assert consume(kafka.bootstrap, "orders", 30) == sorted(first)
    with member(tmp_path, kafka, controller) as broker:
        second = [f"second {number}" for number in range(30)]
        produce(kafka.bootstrap, "orders", second)
        assert consume(broker.bootstrap_servers, "orders", 60) == sorted(first + second)


def test_what_the_controller_decides_goes_to_it_in_an_envelope(
    tmp_path: Path, kafka: ApacheKafka, controller: socket.socket
) -> None:
    with member(tmp_path, kafka, controller) as broker:
        ours = broker.bootstrap_servers
        create(ours, "orders", THEIRS, OWN)
        assert leaders_of(kafka.bootstrap, "orders") == [THEIRS, OWN]
        broker.create_topic("payments", 2)
        eventually(lambda: set(broker.topics()) >= {"orders", "payments"})
        with pytest.raises(TopicAlreadyExistsError):
            broker.create_topic("orders", 2)
        broker.delete_topic("orders")
        eventually(lambda: set(broker.topics()) == {"payments"})


def test_it_goes_on_when_their_controller_was_away(
    tmp_path: Path, kafka: ApacheKafka, controller: socket.socket
) -> None:
    with member(tmp_path, kafka, controller) as broker:
        create(kafka.bootstrap, "orders", OWN)
        kafka.kill()
        produce(broker.bootstrap_servers, "orders", ["without a controller"])
        kafka.start()
        create(broker.bootstrap_servers, "payments", OWN)
        produce(broker.bootstrap_servers, "payments", ["with one"])
        assert consume(kafka.bootstrap, "orders", 1) == ["without a controller"]
        assert consume(kafka.bootstrap, "payments", 1) == ["with one"]


def test_groups_and_idempotent_producers_have_coordinators_on_either_node(
    tmp_path: Path, kafka: ApacheKafka, controller: socket.socket
) -> None:
    with member(tmp_path, kafka, controller) as broker:
        ours = broker.bootstrap_servers
        create(ours, "orders", OWN, THEIRS)
        producer = Producer({"bootstrap.servers": ours, "enable.idempotence": True})
        for partition in (0, 1):
            producer.produce("orders", b"once", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        for number, bootstrap in enumerate([ours, kafka.bootstrap] * 3):
            group = f"readers {number}"
            assert read_by_group(bootstrap, group, "orders", 2) == [b"once", b"once"]
        coordinators = set(leaders_of(ours, "__consumer_offsets"))
        assert coordinators == {OWN, THEIRS}


def read_by_group(bootstrap: str, group: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values
