"""Our broker in a cluster whose controller, and other broker, is Apache Kafka."""

import logging
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import (
    Producer,
)

from bench.peers.brokers import QUICK_TO_START, ApacheKafka, wait_until_serving
from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import ClusterError, TopicAlreadyExistsError
from pykafka_core.types import TRANSACTION_TOPIC, id_text, random_id
from tests.cluster.clients import consume, create, leaders_of, produce, read_by_group
from tests.cluster.transactions.transactions import (
    committed_offsets,
    coordinator_of,
    read_committed,
    send_offsets,
    transactional_producer,
    write,
)
from tests.cluster.voters.growing import Growing, growing
from tests.formats.releases.corpus import HERE as RELEASES
from tests.support.cli import run
from tests.support.evidence.logs import watch
from tests.support.java import classpath, java
from tests.support.patience import PATIENCE_S, eventually
from tests.support.processes.nodes import (
    NOT_BUILT,
    format_kafka,
    kafka_command,
    reserve_port,
)

pytestmark = pytest.mark.jvm

OWN, THEIRS = 2, 1
NEWER = "kafka-4.3", "kafka-4.4"
"""Releases, as folders of `tests/formats/releases`."""


@pytest.fixture
def controller() -> Iterator[socket.socket]:
    with reserve_port() as reserved:
        yield reserved


@pytest.fixture
def release() -> str:
    """One of `NEWER`; empty for the release of the other tests."""
    return ""


def jars_of(release: str) -> str:
    return classpath(RELEASES / release) if release else ApacheKafka.classpath()


@pytest.fixture
def kafka(tmp_path: Path, controller: socket.socket, release: str) -> Iterator[ApacheKafka]:
    cluster = ("--standalone", "-t", id_text(random_id(os.urandom)), *NOT_BUILT)
    config = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    kafka = ApacheKafka(
        tmp_path,
        config,
        jvm=QUICK_TO_START,
        controller=controller,
        quorum=cluster,
        classpath=jars_of(release),
    )
    yield kafka
    kafka.kill()
    kafka.stop()


def member(folder: Path, kafka: ApacheKafka, controller: socket.socket) -> Broker:
    """Return a broker whose data directory was formatted for Kafka's cluster."""
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
            "inter.broker.listener.name": "PLAINTEXT",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "controller.quorum.voters": f"{THEIRS}@127.0.0.1:{controller.getsockname()[1]}",
        },
    )


def test_unsupported_features_block_the_broker_until_they_are_lowered(
    tmp_path: Path,
    kafka: ApacheKafka,
    controller: socket.socket,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: the error was UNSUPPORTED_VERSION, and the log had a traceback."""
    levels = "share.version=1", "streams.version=1"
    assert run("features", "upgrade", *levels, "--bootstrap-server", kafka.bootstrap) == 0
    with caplog.at_level(logging.CRITICAL), pytest.raises(ClusterError) as refusal:
        member(tmp_path, kafka, controller)
    assert [line.exc_info for line in caplog.records] == [None]
    refused = str(refusal.value)
    assert ", ".join(levels) in refused
    command = re.search(r"kafka-features\.sh (.*)", refused)
    assert command is not None, refused
    given = command[1].replace("HOST:PORT", kafka.bootstrap).split()
    java("org.apache.kafka.tools.FeatureCommand", *given)
    with member(tmp_path, kafka, controller) as broker:
        create(broker.bootstrap_servers, "orders", OWN)
        produce(broker.bootstrap_servers, "orders", ["after it"])
        assert consume(kafka.bootstrap, "orders", 1) == ["after it"]


@contextmanager
def their_broker(folder: Path, cluster: Growing, release: str) -> Iterator[str]:
    """Yield the address of an Apache Kafka broker, `OWN`, whose controller is ours."""
    identity = DataDirectory(cluster.data(1)).identity()
    assert identity is not None
    java = ["java", *QUICK_TO_START, "-cp", jars_of(release)]
    properties = folder / "server.properties"
    with reserve_port() as reserved, open(folder / "broker.log", "wb") as log:
        bootstrap = f"127.0.0.1:{reserved.getsockname()[1]}"
        properties.write_text(
            f"process.roles=broker\nnode.id={OWN}\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{cluster.controller_port(1)}\n"
            f"listeners=PLAINTEXT://{bootstrap}\nlog.dirs={folder / 'theirs'}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        )
        format_kafka(java, properties, "-t", identity.cluster_id)
        watch("Apache Kafka's broker", folder / "broker.log")
        process = subprocess.Popen(kafka_command(java, properties), stdout=log)
        try:
            wait_until_serving(bootstrap, process)
            yield bootstrap
        finally:
            process.kill()
            process.wait(PATIENCE_S)


@pytest.mark.parametrize("release", NEWER)
def test_kafka_broker_joins_a_cluster_of_our_controller(tmp_path: Path, release: str) -> None:
    with growing(tmp_path, 1) as cluster:
        cluster.begin()
        with their_broker(tmp_path, cluster, release) as theirs:
            create(cluster.bootstrap, "orders", OWN, THEIRS, OWN)
            assert leaders_of(theirs, "orders") == [OWN, THEIRS, OWN]
            values = [f"value {number}" for number in range(30)]
            produce(theirs, "orders", values)
            assert consume(cluster.bootstrap, "orders", 30) == sorted(values)


@pytest.mark.parametrize("release", ["", *NEWER])
def test_broker_leads_partitions_of_a_kafka_cluster_through_a_restart(
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


def test_requests_for_the_controller_are_forwarded_in_an_envelope(
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


def test_broker_continues_after_an_outage_of_the_kafka_controller(
    tmp_path: Path, kafka: ApacheKafka, controller: socket.socket
) -> None:
    with member(tmp_path, kafka, controller) as broker:
        create(kafka.bootstrap, "orders", OWN)
        assert leaders_of(broker.bootstrap_servers, "orders") == [OWN]
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


def test_transactions_have_partitions_offsets_and_coordinators_on_either_node(
    tmp_path: Path, kafka: ApacheKafka, controller: socket.socket
) -> None:
    """Each node verifies with the other's coordinator, and writes the other's markers."""
    with member(tmp_path, kafka, controller) as broker:
        ours = broker.bootstrap_servers
        create(ours, "orders", OWN, THEIRS)
        create(ours, "payments", OWN, THEIRS)
        produce(ours, "orders", ["a", "b"])
        expected: list[str] = []
        coordinators: set[int] = set()
        for number in range(6):
            name = f"transfers-{number}"
            producer = transactional_producer(ours, name)
            coordinators.add(coordinator_of(ours, TRANSACTION_TOPIC, name))
            for commit in (False, True):
                producer.begin_transaction()
                values = [f"{number} {commit} {partition}" for partition in (0, 1)]
                write(producer, "payments", values)
                send_offsets(producer, ours, f"readers-{number}", "orders", {0: 1, 1: number})
                if commit:
                    producer.commit_transaction(PATIENCE_S)
                    expected += values
                else:
                    producer.abort_transaction(PATIENCE_S)
        assert coordinators == {OWN, THEIRS}
        for bootstrap in (ours, kafka.bootstrap):
            assert read_committed(bootstrap, "payments") == sorted(expected)
            for number in range(6):
                committed = committed_offsets(bootstrap, f"readers-{number}", "orders", 2)
                assert committed == {0: 1, 1: number}
