"""The core as the control plane uses it, over real sockets."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import confluent_kafka
import pytest

from pykafka_core import _core
from pykafka_core.errors import (
    ClosedError,
    ForkedError,
    StorageLockedError,
    UnknownTopicIdError,
)
from tests.support.patience import PATIENCE_NS, PATIENCE_S, POLL_S, exactly

SOON_NS = exactly(1_000_000, "the deadline is tested, and it passes on every machine")
CREATE_TOPICS = 19
BODY = bytes(9)
"""No topics, a timeout of 0, and ``validate_only`` is false."""


@pytest.fixture
def core() -> Iterator[_core.Core]:
    core = _core.Core(
        _core.CoreOptions(data_dir=None, node_id=1, cluster_id="a-cluster", durability="memory")
    )
    yield core
    core.stop(0)


@pytest.fixture
def port(core: _core.Core) -> int:
    port = core.listen("PLAINTEXT", "127.0.0.1:0")
    core.apply(
        _core.ImageDelta(
            metadata_offset=0,
            brokers=[
                _core.BrokerEndpoint(
                    node_id=1, listener="PLAINTEXT", host="127.0.0.1", port=port, rack=None
                )
            ],
            controller_id=1,
            api_versions={CREATE_TOPICS: (2, 7)},
        )
    )
    core.serve()
    return port


def frame(api_key: int, api_version: int, correlation_id: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, api_version, correlation_id, 2) + b"me"
    return struct.pack(">i", len(header + body)) + header + body


def receive(stream: socket.socket) -> bytes:
    prefix = stream.recv(4, socket.MSG_WAITALL)
    return stream.recv(struct.unpack(">i", prefix)[0], socket.MSG_WAITALL)


def next_event(core: _core.Core) -> object:
    return core.wait(core.now_ns() + PATIENCE_NS, 1)[0]


def test_request_reaches_python_and_its_reply_reaches_the_client(
    core: _core.Core, port: int
) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.sendall(frame(CREATE_TOPICS, 2, 7, BODY))
        request = next_event(core)
        assert isinstance(request, _core.Request)
        assert (request.api_key, request.api_version, request.body) == (CREATE_TOPICS, 2, BODY)
        assert (request.client_id, request.client_host, request.listener) == (
            "me",
            "127.0.0.1",
            "PLAINTEXT",
        )
        assert request.principal == "User:ANONYMOUS"
        assert request.received_ns <= core.now_ns()
        core.respond([(request.id, b"answer"), (request.id + 1, b"nobody's")])
        assert receive(stream) == struct.pack(">i", 7) + b"answer"


def test_reset_connection_cancels_its_request(core: _core.Core, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.sendall(frame(CREATE_TOPICS, 2, 7, BODY))
        request = next_event(core)
    cancelled = next_event(core)
    assert isinstance(request, _core.Request)
    assert isinstance(cancelled, _core.Cancelled)
    assert cancelled.id == request.id


def test_wake_ends_wait_without_events(core: _core.Core) -> None:
    waking = threading.Thread(target=core.wake)
    waking.start()
    assert core.wait(core.now_ns() + PATIENCE_NS) == []
    waking.join()


def test_wait_returns_at_its_deadline(core: _core.Core) -> None:
    deadline_ns = core.now_ns() + SOON_NS
    assert core.wait(deadline_ns) == []
    assert core.now_ns() >= deadline_ns


def test_stopped_core_rejects_calls_and_connections(core: _core.Core, port: int) -> None:
    core.stop(0)
    core.stop(0)
    assert core.wait(core.now_ns() + PATIENCE_NS) == []
    with pytest.raises(ClosedError):
        core.listen("PLAINTEXT", "127.0.0.1:0")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def test_address_in_use_is_an_os_error(core: _core.Core, port: int) -> None:
    with pytest.raises(OSError, match="cannot listen on") as caught:
        core.listen("OTHER", f"127.0.0.1:{port}")
    assert caught.value.errno


def test_delta_that_apply_cannot_use_is_reported_by_check_and_skipped(core: _core.Core) -> None:
    settings = {"max.connections": "many", "fetch.max.bytes": "7"}
    delta = _core.ImageDelta(metadata_offset=10, broker_settings=settings)
    (refusal,) = core.check(delta)
    assert "max.connections" in refusal
    core.drain_log()
    core.apply(delta)
    assert [refusal in text for *_, text in core.drain_log()] == [True]
    assert core.check(_core.ImageDelta(metadata_offset=11)) == []


def test_fixed_clock_does_not_advance_while_deadlines_pass() -> None:
    options = _core.CoreOptions(
        data_dir=None, node_id=1, cluster_id="c", durability="memory", clock_ms=1_700_000_000_000
    )
    core = _core.Core(options)
    core.wait(core.now_ns() + SOON_NS)
    assert core.time_ms() == 1_700_000_000_000


def test_statistics_and_log_are_flat_snapshots(core: _core.Core, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.sendall(struct.pack(">i", -1))
        assert stream.recv(1) == b""
    snapshot = dict(line.split() for line in core.statistics().decode().splitlines())
    assert (snapshot["connections_accepted"], snapshot["connections_killed"]) == ("1", "1")
    [(_, level, target, text)] = core.drain_log()
    assert (level, target) == (30, "broker.connection")
    assert "frame of -1 bytes" in text


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_cannot_use_or_harm_the_core(core: _core.Core, port: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            core.now_ns()
        except ForkedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.sendall(frame(CREATE_TOPICS, 2, 7, BODY))
        assert isinstance(next_event(core), _core.Request)


TOPIC = bytes(range(16))


def topic_delta(metadata_offset: int, name: str, *, hidden: bool = False) -> _core.ImageDelta:
    partition = _core.PartitionImage(
        index=0, leader=1, leader_epoch=0, partition_epoch=0, replicas=[1], isr=[1]
    )
    topic = _core.TopicImage(name=name, topic_id=TOPIC, partitions=[partition], hidden=hidden)
    return _core.ImageDelta(metadata_offset=metadata_offset, topics=[topic])


def appended(core: _core.Core, token: int) -> _core.Appended:
    while True:
        event = next_event(core)
        if isinstance(event, _core.Appended):
            assert event.token == token
            return event


def log_dirs(core: _core.Core) -> _core.LogDirs:
    event = next_event(core)
    while not isinstance(event, _core.LogDirs):
        event = next_event(core)
    return event


def test_isr_change_is_proposed_one_at_a_time_by_the_leader_of_its_epoch(
    core: _core.Core,
) -> None:
    partition = _core.PartitionImage(
        index=0, leader=1, leader_epoch=3, partition_epoch=5, replicas=[1, 2], isr=[1, 2]
    )
    topic = _core.TopicImage(name="t", topic_id=TOPIC, partitions=[partition])
    core.apply(_core.ImageDelta(metadata_offset=0, topics=[topic]))
    alone = [(1, 1)]
    assert core.propose_isr((TOPIC, 0), 2, 5, alone) is None
    assert core.propose_isr((TOPIC, 0), 3, 4, alone) is None
    assert core.propose_isr((TOPIC, 0), 3, 5, [(2, 1)]) is None, "without the leader"
    proposal = core.propose_isr((TOPIC, 0), 3, 5, alone)
    assert proposal is not None
    assert core.propose_isr((TOPIC, 0), 3, 5, alone) is None, "one is in flight"
    core.settle_isr(proposal, "rejected")
    again = core.propose_isr((TOPIC, 0), 3, 5, alone)
    assert again is not None
    assert again != proposal
    core.settle_isr(again, "unknown")
    assert core.propose_isr((TOPIC, 0), 3, 5, alone) is None, "until the image tells"
    core.settle_isr(again, "committed", [1], 4)
    assert core.propose_isr((TOPIC, 0), 3, 5, alone) is None, "older than what is known"
    core.settle_isr(again, "committed", [1], 6)
    core.settle_isr(again, "rejected")
    assert core.propose_isr((TOPIC, 0), 3, 5, alone) is None, "of the epoch before"
    assert core.propose_isr((TOPIC, 0), 3, 6, alone) is not None
    with pytest.raises(ValueError, match="committed, rejected or unknown"):
        core.settle_isr(proposal, "maybe")  # type: ignore[arg-type]
    for outcome, committed in (("committed", ()), ("committed", ([1],)), ("unknown", ([1], 6))):
        with pytest.raises(ValueError, match="has members and a partition epoch"):
            core.settle_isr(proposal, cast("Any", outcome), *committed)


def test_append_completes_and_is_read_back(core: _core.Core) -> None:
    core.apply(topic_delta(0, "__cluster_metadata", hidden=True))
    partition = (TOPIC, 0)
    core.append(5, partition, 0, [(b"key", b"value"), (None, b"second")])
    done = appended(core, 5)
    assert (done.error_code, done.offset) == (0, 0)
    core.commit(partition, 2)
    offsets = core.offsets(partition)
    assert (offsets.log_start_offset, offsets.high_watermark, offsets.log_end_offset) == (0, 2, 2)
    batch = core.read(partition, 0, 1 << 20, "log_end")
    assert b"key" in batch
    assert b"second" in batch
    assert core.read(partition, 2, 1 << 20, "high_watermark") == b""


def test_append_to_an_unknown_partition_or_epoch_completes_with_the_error(core: _core.Core) -> None:
    core.append(1, (TOPIC, 0), 0, [(None, b"value")])
    assert appended(core, 1).error_code == UnknownTopicIdError.code
    with pytest.raises(UnknownTopicIdError):
        core.offsets((TOPIC, 0))
    core.apply(topic_delta(0, "a"))
    core.append(2, (TOPIC, 0), 9, [(None, b"value")])
    assert appended(core, 2).error_code != 0


def test_delete_before_returns_the_new_log_start(core: _core.Core) -> None:
    core.apply(topic_delta(0, "a"))
    core.append(1, (TOPIC, 0), 0, [(None, b"value")])
    appended(core, 1)
    core.delete_before(2, (TOPIC, 0), -1)
    done = next_event(core)
    while not isinstance(done, _core.Maintained):
        done = next_event(core)
    assert (done.token, done.error_code, done.offset) == (2, 0, 1)


def test_locked_directory_names_itself_and_is_unlocked_after_a_stop(tmp_path: Path) -> None:
    options = _core.CoreOptions(
        data_dir=str(tmp_path), node_id=1, cluster_id="c", durability="fsync"
    )
    first = _core.Core(options)
    with pytest.raises(StorageLockedError, match="in use"):
        _core.Core(options)
    first.stop(0)
    second = _core.Core(options)
    second.describe_log_dirs(1, [])
    described = log_dirs(second)
    assert 0 < described.usable_bytes <= described.total_bytes
    second.stop(0)


def test_records_survive_a_stop(tmp_path: Path) -> None:
    options = _core.CoreOptions(
        data_dir=str(tmp_path), node_id=1, cluster_id="c", durability="fsync"
    )
    core = _core.Core(options)
    core.apply(topic_delta(0, "a"))
    core.append(1, (TOPIC, 0), 0, [(b"k", b"v")])
    assert appended(core, 1).error_code == 0
    core.describe_log_dirs(2, [(TOPIC, 0)])
    assert [(topic, index) for topic, index, _ in log_dirs(core).sizes] == [(TOPIC, 0)]
    core.stop(1000)
    core = _core.Core(options)
    core.apply(topic_delta(0, "a"))
    assert core.offsets((TOPIC, 0)).log_end_offset == 1
    core.stop(0)


def test_confluent_kafka_produces_and_consumes(core: _core.Core, port: int) -> None:
    core.apply(topic_delta(1, "a"))
    settings = {"bootstrap.servers": f"127.0.0.1:{port}"}
    producer = confluent_kafka.Producer({**settings, "linger.ms": 5})
    failed: list[object] = []
    for number in range(1000):
        producer.produce(
            "a",
            key=b"%d" % number,
            value=b"value",
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition("a", 0, 0)])
    keys: list[bytes | None] = []
    while len(keys) < 1000:
        for message in consumer.consume(1000, POLL_S):
            assert message.error() is None
            keys.append(message.key())
    consumer.close()
    assert keys == [b"%d" % number for number in range(1000)]


def test_abandoned_core_leaves_its_directory_like_a_killed_process(
    tmp_path: Path,
) -> None:
    options = _core.CoreOptions(
        data_dir=str(tmp_path), node_id=1, cluster_id="a-cluster", durability="os"
    )
    core = _core.Core(options)
    partition = _core.PartitionImage(
        index=0, leader=1, leader_epoch=3, partition_epoch=1, replicas=[1], isr=[1]
    )
    topic = _core.TopicImage(name="orders", topic_id=TOPIC, partitions=[partition])
    core.apply(_core.ImageDelta(metadata_offset=0, topics=[topic]))
    core.append(7, (TOPIC, 0), 3, [(b"key", b"value")])
    deadline = core.now_ns() + PATIENCE_NS
    while not any(isinstance(event, _core.Appended) for event in core.wait(deadline)):
        assert core.now_ns() < deadline
    core.abandon()
    core.abandon()
    core.stop(0)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert b"value" in (tmp_path / "orders-0" / f"{0:020}.log").read_bytes()
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    assert not checkpoint.exists() or "orders" not in checkpoint.read_text()
    again = _core.Core(options)
    again.apply(_core.ImageDelta(metadata_offset=0, topics=[topic]))
    assert again.offsets((TOPIC, 0)).log_end_offset == 1
    again.stop(0)


def test_client_that_is_cut_off_waits_and_gets_its_reply_later(core: _core.Core, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        core.cut_off(accepted=True, peers=[])
        client.sendall(frame(18, 0, 5, b""))
        client.settimeout(exactly(0.1, "no response may come"))
        with pytest.raises(TimeoutError):
            client.recv(1)
        core.cut_off(accepted=False, peers=[])
        client.settimeout(PATIENCE_S)
        assert receive(client)[:4] == struct.pack(">i", 5)


def test_peer_that_is_cut_off_gets_nothing_until_it_is_reachable_again(
    core: _core.Core,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        for peers in ([address], None):
            core.cut_off(accepted=False, peers=peers)
            core.send(7, ("test", *address), 3, 12, b"", 100)
            deadline = core.now_ns() + PATIENCE_NS
            while not (events := core.wait(deadline)):
                assert core.now_ns() < deadline
            assert isinstance(events[0], _core.Replied)
        listener.settimeout(exactly(0.05, "no connection may come"))
        with pytest.raises(TimeoutError):
            listener.accept()
        core.cut_off(accepted=False, peers=[])
        listener.settimeout(PATIENCE_S)
        listener.accept()[0].close()
