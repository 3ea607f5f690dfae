"""The core as the control plane drives it, over real sockets."""

import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from pykafka_core import _core
from pykafka_core.errors import ClosedError, ConfigurationError, ForkedError

PATIENCE_NS = 20_000_000_000
CREATE_TOPICS = 19


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
    return core.wait(core.now_ns() + PATIENCE_NS)[0]


def test_request_reaches_python_and_its_answer_the_client(core: _core.Core, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        stream.sendall(frame(CREATE_TOPICS, 2, 7, b"body"))
        request = next_event(core)
        assert isinstance(request, _core.Request)
        assert (request.api_key, request.api_version, request.body) == (CREATE_TOPICS, 2, b"body")
        assert (request.client_id, request.client_host, request.listener) == (
            "me",
            "127.0.0.1",
            "PLAINTEXT",
        )
        assert request.principal == "User:ANONYMOUS"
        assert request.received_ns <= core.now_ns()
        core.respond([(request.id, b"answer"), (request.id + 1, b"nobody's")])
        assert receive(stream) == struct.pack(">i", 7) + b"answer"


def test_closed_connection_cancels_its_request(core: _core.Core, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        stream.sendall(frame(CREATE_TOPICS, 2, 7, b"body"))
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
    deadline_ns = core.now_ns() + 1_000_000
    assert core.wait(deadline_ns) == []
    assert core.now_ns() >= deadline_ns


def test_stopped_core_refuses_and_says_so(core: _core.Core, port: int) -> None:
    core.stop(0)
    core.stop(0)
    assert core.wait(core.now_ns() + PATIENCE_NS) == []
    with pytest.raises(ClosedError):
        core.listen("PLAINTEXT", "127.0.0.1:0")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=20)


def test_address_in_use_is_an_os_error(core: _core.Core, port: int) -> None:
    with pytest.raises(OSError, match="cannot listen on") as caught:
        core.listen("OTHER", f"127.0.0.1:{port}")
    assert caught.value.errno


def test_settings_of_the_wrong_type_are_configuration_errors(core: _core.Core) -> None:
    delta = _core.ImageDelta(metadata_offset=1, broker_settings={"max.connections": "many"})
    with pytest.raises(ConfigurationError, match=r"max\.connections"):
        core.apply(delta)


def test_fixed_clock_stands_still_while_deadlines_pass() -> None:
    options = _core.CoreOptions(
        data_dir=None, node_id=1, cluster_id="c", durability="memory", clock_ms=1_700_000_000_000
    )
    core = _core.Core(options)
    core.wait(core.now_ns() + 1_000_000)
    assert core.time_ms() == 1_700_000_000_000


def test_statistics_and_log_are_flat_snapshots(core: _core.Core, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        stream.sendall(struct.pack(">i", -1))
        assert stream.recv(1) == b""
    snapshot = dict(line.split() for line in core.statistics().decode().splitlines())
    assert (snapshot["connections_accepted"], snapshot["connections_killed"]) == ("1", "1")
    [(_, level, target, text)] = core.drain_log()
    assert (level, target) == (30, "broker.connection")
    assert "frame of -1 bytes" in text


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_is_refused_and_harms_nothing(core: _core.Core, port: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            core.now_ns()
        except ForkedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        stream.sendall(frame(CREATE_TOPICS, 2, 7, b"body"))
        assert isinstance(next_event(core), _core.Request)
