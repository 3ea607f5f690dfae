"""Every fault appears on every surface: `Broker.health`, metrics, ``/readyz`` and the commands.

A damaged partition was visible in one log line, while every check called the broker healthy.
"""

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_core import Broker, Cluster
from pykafka_core.cli.files.batches import HEADER_SIZE
from pykafka_core.metadata.health import MEASURES, State
from pykafka_core.protocol.messages import FetchRequest
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC
from tests.broker.metrics.surfaces import Capture, Found, check
from tests.cluster.roles import BROKERS, CONTROLLERS, role_nodes
from tests.faults.disks.disk_full_child import AT_ONCE, STORAGE_ERROR, Sender
from tests.support.patience import PATIENCE_S, POLL_S, eventually
from tests.support.wire import Connection

TOPIC = "t"
NAME = f"{TOPIC}-0"
FETCH = 1
LONELY = "one-replica"
VALUE = b"x" * 100_000


def log_of(data: Path) -> Path:
    return data / NAME / f"{0:020}.log"


def written(data: Path, broker: Broker) -> Path:
    """Create a topic with two records in two batches; return its file."""
    broker.create_topic(TOPIC, config={"compression.type": "uncompressed"})
    sender = Sender(broker.bootstrap_servers)
    assert (sender.send(TOPIC, VALUE), sender.send(TOPIC, VALUE)) == (0, 0)
    return log_of(data)


def test_a_damaged_partition_is_read_only_until_it_is_deleted(
    tmp_path: Path, capsys: Capture
) -> None:
    with Broker(tmp_path) as broker:
        path = written(tmp_path, broker)
        check(capsys, {broker: {}})
    path.write_bytes(path.read_bytes()[:1000])
    with Broker(tmp_path) as broker:
        check(capsys, {broker: {State.READ_ONLY: [NAME]}})
        broker.delete_topic(TOPIC)
        check(capsys, {broker: {}})


def test_damage_that_is_found_right_before_a_stop_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stop left the event in the queue, so nothing explained the missing records."""
    with Broker(tmp_path) as broker:
        path = written(tmp_path, broker)
    partition = FetchRequest.FetchPartition(partition_max_bytes=1)
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])])
    with Broker(tmp_path) as broker:
        address = broker.bootstrap_servers
        broker._loop.pause()
        path.write_bytes(path.read_bytes()[:1000])
        with Connection(address) as connection:
            connection.ask(FETCH, 12, request)
    assert f"partition {NAME} is read_only" in caplog.text


def test_a_batch_that_cannot_be_read_is_reported_until_its_records_are_deleted(
    tmp_path: Path, capsys: Capture
) -> None:
    """A clean restart ended the report, but the deletion did not."""
    unreadable = {State.UNREADABLE: [NAME]}
    with Broker(tmp_path) as broker:
        path = written(tmp_path, broker)
        with path.open("r+b") as file:
            file.seek(8)  # the size of the first batch
            file.write(b"\x55\x55\x55\x55")
        check(capsys, {broker: {}})
        read_until_unreadable(broker)
        check(capsys, {broker: unreadable})
    with Broker(tmp_path) as broker:
        check(capsys, {broker: unreadable})
        assert Sender(broker.bootstrap_servers).send(TOPIC, VALUE) == 0
        delete_below(broker, 1)
        check(capsys, {broker: {}})
    with Broker(tmp_path) as broker:
        check(capsys, {broker: {}})


def delete_below(broker: Broker, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(TOPIC, 0, offset)]).values()
    assert deleted.result(PATIENCE_S).low_watermark == offset


def read_until_unreadable(broker: Broker) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    consumer = Consumer(servers | {"group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])

    def met() -> bool:
        consumer.poll(POLL_S)
        return bool(broker.health()[State.UNREADABLE])

    eventually(met)
    consumer.close()


def test_a_log_that_cannot_be_compacted_is_reported_until_it_is_deleted(
    tmp_path: Path, capsys: Capture
) -> None:
    """Only one log line reported it, and the disk filled up."""
    compacted = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "compression.type": "uncompressed",
        "segment.bytes": str(1 << 20),
    }
    with Broker(tmp_path, config={"log.cleaner.enable": "false"}) as broker:
        broker.create_topic(TOPIC, config=compacted)
        sender = Sender(broker.bootstrap_servers)
        assert {sender.send(TOPIC, VALUE, b"key") for _ in range(20)} == {0}
    flip_first_record(tmp_path, [NAME])
    with Broker(tmp_path, config={"log.cleaner.backoff.ms": 100}) as broker:
        check(capsys, {broker: {State.UNCLEANABLE: [NAME]}})
        broker.delete_topic(TOPIC)
        check(capsys, {broker: {}})


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit the files of this process: the kernel refuses to write more, with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_io_error_is_an_offline_replica_in_a_failed_directory(
    tmp_path: Path, capsys: Capture
) -> None:
    with Broker(tmp_path) as broker:
        written(tmp_path, broker)
        sender = Sender(broker.bootstrap_servers)
        # The third record does not fit. The file may be longer, because space is reserved.
        with files_of_at_most(5 * len(VALUE) // 2):
            assert sender.send(TOPIC, VALUE) == STORAGE_ERROR
        failed = {State.OFFLINE_REPLICA: [NAME], State.FAILED_DIRECTORY: [str(tmp_path)]}
        check(capsys, {broker: failed})
        broker.delete_topic(TOPIC)
        check(capsys, {broker: {State.FAILED_DIRECTORY: [str(tmp_path)]}})
    with Broker(tmp_path) as broker:
        check(capsys, {broker: {}})


def rename(directory: Path) -> None:
    directory.rename(directory.with_name("elsewhere"))


@pytest.mark.interval
@pytest.mark.parametrize("displace", [shutil.rmtree, rename])
def test_log_whose_directory_was_removed_is_offline(
    tmp_path: Path, capsys: Capture, displace: Callable[[Path], None]
) -> None:
    """Records were acknowledged until the stop, but were missing after the next start."""
    with Broker(tmp_path) as broker:
        written(tmp_path, broker)
        displace(tmp_path / NAME)
        sender = Sender(broker.bootstrap_servers)
        eventually(lambda: sender.send(TOPIC, b"x") == STORAGE_ERROR)
        failed = {State.OFFLINE_REPLICA: [NAME], State.FAILED_DIRECTORY: [str(tmp_path)]}
        check(capsys, {broker: failed})


@pytest.mark.load
def test_a_full_disk_is_reported_until_an_append_succeeds(capsys: Capture) -> None:
    with Broker(memory_max=24 << 20) as broker:
        broker.create_topic(TOPIC, config={"compression.type": "uncompressed"} | AT_ONCE)
        broker.create_topic("other")
        sender = Sender(broker.bootstrap_servers)
        assert sender.send_until_full(TOPIC) == STORAGE_ERROR
        check(capsys, {broker: {State.FULL_DIRECTORY: ["memory"]}})
        broker.delete_topic(TOPIC)
        sender.send_until_accepted("other", VALUE)
        check(capsys, {broker: {}})


def test_a_coordinator_that_cannot_be_loaded_is_reported_until_a_start_loads_it(
    tmp_path: Path, capsys: Capture
) -> None:
    """Requests of its groups got NOT_COORDINATOR, while every check called the broker healthy."""
    config = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    names = [f"{GROUP_TOPIC}-0", f"{TRANSACTION_TOPIC}-0"]
    with Broker(tmp_path, config=config) as broker:
        broker.create_topic(TOPIC)
        coordinate(broker)
        check(capsys, {broker: {}})
    flip_first_record(tmp_path, names)
    with Broker(tmp_path, config=config) as broker:
        check(capsys, {broker: {State.UNLOADED_COORDINATOR: names}})
    flip_first_record(tmp_path, names)
    with Broker(tmp_path, config=config) as broker:
        check(capsys, {broker: {}})


def coordinate(broker: Broker) -> None:
    """Write a record of a group and one of a transaction."""
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    consumer = Consumer(servers | {"group.id": "g"})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    consumer.close()
    Producer(servers | {"transactional.id": "x"}).init_transactions(PATIENCE_S)


def flip_first_record(data: Path, names: list[str]) -> None:
    """Flip a bit of the first record; a second call restores it."""
    for name in names:
        path = data / name / f"{0:020}.log"
        content = bytearray(path.read_bytes())
        content[HEADER_SIZE] ^= 1
        path.write_bytes(content)


@pytest.mark.cluster
def test_a_killed_node_leaves_partitions_under_replicated_under_min_isr_and_offline(
    capsys: Capture,
) -> None:
    with Cluster(3) as cluster:
        cluster.create_topic(TOPIC, 1, config={"min.insync.replicas": "3"})
        cluster.wait_isr(TOPIC)
        client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        client.create_topics([NewTopic(LONELY, 3, 1)])[LONELY].result(PATIENCE_S)
        homes = [cluster.wait_leader(LONELY, index) for index in range(3)]
        controller, leader = cluster.controller(), cluster.wait_leader(TOPIC, 0)
        check(capsys, {broker: {} for broker in cluster.brokers})
        gone = next(node for node in range(3) if node not in (controller, leader))
        cluster.kill(gone)
        states: dict[int, dict[State, list[str]]] = {node: {} for node in range(3) if node != gone}
        states[leader] |= {State.UNDER_REPLICATED: [NAME], State.UNDER_MIN_ISR: [NAME]}
        lost = [f"{LONELY}-{index}" for index, home in enumerate(homes) if home == gone]
        assert lost
        states[controller][State.OFFLINE] = lost
        expected: dict[Broker, Found] = {
            cluster.brokers[node]: found for node, found in states.items()
        }
        check(capsys, expected)


@pytest.mark.cluster
def test_broker_without_a_controller_reports_it_until_one_replies(
    tmp_path: Path, capsys: Capture
) -> None:
    """A broker's Metadata response names the broker as the controller, so `status` was healthy
    without a controller.
    """
    with role_nodes(tmp_path) as nodes:
        nodes.settings["broker.session.timeout.ms"] = 2000
        broker_id = BROKERS[0]
        nodes.start(*CONTROLLERS, broker_id)
        broker = nodes.up[broker_id]
        check(capsys, {broker: {}})
        nodes.stop(*CONTROLLERS)
        check(capsys, {broker: {State.NO_CONTROLLER: [f"node {broker_id}"]}})
        nodes.start(*CONTROLLERS)
        check(capsys, {broker: {}})


def test_every_state_is_measured_and_has_its_own_name() -> None:
    assert MEASURES.keys() == set(State)
    assert len({measure.metric for measure in MEASURES.values()}) == len(State)
    assert len({measure.label for measure in MEASURES.values()}) == len(State)
