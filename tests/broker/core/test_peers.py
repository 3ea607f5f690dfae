"""Requests of a core to other nodes, over real sockets."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pykafka_core import Broker, _core
from pykafka_core.protocol import decode_response, encode_message
from pykafka_core.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
)
from tests.support.patience import PATIENCE_MS, PATIENCE_NS

if TYPE_CHECKING:
    from pykafka_core._core import Peer

FETCH, METADATA, API_VERSIONS, CREATE_TOPICS = 1, 3, 18, 19
METADATA_VERSION = 12
REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE, NETWORK_EXCEPTION, UNSUPPORTED_VERSION = 7, 8, 13, 35
LISTENER_NOT_FOUND = 72
API_VERSIONS_BODY = encode_message(
    ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4
)
METADATA_BODY = encode_message(MetadataRequest(topics=None), METADATA_VERSION)
FETCH_BODY = encode_message(FetchRequest(), 18)


def creation(number: int) -> bytes:
    """Return the body of a CreateTopics request, version 7."""
    return encode_message(CreateTopicsRequest(timeout_ms=number), 7)


def new_core(node_id: int) -> _core.Core:
    return _core.Core(
        _core.CoreOptions(
            data_dir=None, node_id=node_id, cluster_id="a-cluster", durability="memory"
        )
    )


@pytest.fixture
def core() -> Iterator[_core.Core]:
    core = new_core(1)
    yield core
    core.stop(0)


@pytest.fixture
def other() -> Iterator[_core.Core]:
    """A node whose requests for Python get responses only from the test."""
    core = new_core(2)
    yield core
    core.stop(0)


@pytest.fixture
def other_peer(other: _core.Core) -> "Peer":
    port = other.listen("PLAINTEXT", "127.0.0.1:0")
    other.apply(_core.ImageDelta(metadata_offset=0, api_versions={CREATE_TOPICS: (2, 7)}))
    other.serve()
    return ("test", "127.0.0.1", port)


def peer_of(broker: Broker, purpose: str = "test") -> "Peer":
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    return (purpose, host, int(port))


def replies(core: _core.Core, count: int = 1) -> list[_core.Replied]:
    found: list[_core.Replied] = []
    deadline = core.now_ns() + PATIENCE_NS
    while len(found) < count:
        events = core.wait(deadline)
        assert events, "in time"
        found += [event for event in events if isinstance(event, _core.Replied)]
    return found


def request_at(other: _core.Core) -> _core.Request:
    (event,) = other.wait(other.now_ns() + PATIENCE_NS, 1)
    assert isinstance(event, _core.Request)
    return event


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_broker_replies(core: _core.Core, host: str) -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        peer = ("test", host, peer_of(broker)[2])
        core.send(7, peer, METADATA, METADATA_VERSION, METADATA_BODY, PATIENCE_MS)
        (reply,) = replies(core)
        assert (reply.token, reply.error_code, reply.versions, reply.reason) == (7, 0, None, "")
        response = decode_response(METADATA, METADATA_VERSION, reply.body)
        assert isinstance(response, MetadataResponse)
        assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("orders", 3)]


def test_replies_are_in_the_order_of_the_requests(core: _core.Core) -> None:
    with Broker() as broker:
        for token in range(1_000):
            core.send(
                token, peer_of(broker), METADATA, METADATA_VERSION, METADATA_BODY, PATIENCE_MS
            )
        on_response = replies(core, 1_000)
        assert [(reply.token, reply.error_code) for reply in on_response] == [
            (token, 0) for token in range(1_000)
        ]
        assert broker.statistics()["connections_accepted"] == 1


def test_unsupported_version_is_reported_with_the_supported_ones(
    core: _core.Core, other_peer: "Peer"
) -> None:
    core.send(7, other_peer, CREATE_TOPICS, 8, b"", PATIENCE_MS)
    core.send(8, other_peer, 999, 0, b"", PATIENCE_MS)
    told = [(reply.token, reply.error_code, reply.versions) for reply in replies(core, 2)]
    assert told == [(7, UNSUPPORTED_VERSION, (2, 7)), (8, UNSUPPORTED_VERSION, (0, -1))]


def test_other_node_gets_the_client_id(
    core: _core.Core, other: _core.Core, other_peer: "Peer"
) -> None:
    core.send(7, other_peer, CREATE_TOPICS, 7, creation(0), PATIENCE_MS)
    request = request_at(other)
    assert (request.client_id, request.api_key, request.api_version, request.body) == (
        "broker-1",
        CREATE_TOPICS,
        7,
        creation(0),
    )
    other.respond([(request.id, b"a response")])
    (reply,) = replies(core)
    assert reply.body == b"a response"


def test_controller_listener_has_its_own_apis_and_passes_each_request_to_python(
    core: _core.Core,
) -> None:
    """It works before the node serves its clients, to which these APIs are not visible."""
    node = new_core(3)
    port = node.listen("CONTROLLER", "127.0.0.1:0", {FETCH: (17, 18), 52: (0, 2)})
    peer = ("test", "127.0.0.1", port)
    core.send(1, peer, API_VERSIONS, 4, API_VERSIONS_BODY, PATIENCE_MS)
    (reply,) = replies(core)
    told = decode_response(API_VERSIONS, 4, reply.body)
    assert isinstance(told, ApiVersionsResponse)
    versions = [(api.api_key, api.min_version, api.max_version) for api in told.api_keys]
    assert versions == [(FETCH, 17, 18), (API_VERSIONS, 0, 5), (52, 0, 2)]
    core.send(2, peer, FETCH, 18, FETCH_BODY, PATIENCE_MS)
    request = request_at(node)
    assert (request.listener, request.api_key, request.body) == ("CONTROLLER", FETCH, FETCH_BODY)
    node.respond([(request.id, b"answered")])
    assert [reply.body for reply in replies(core)] == [b"answered"]
    core.send(3, peer, METADATA, METADATA_VERSION, METADATA_BODY, PATIENCE_MS)
    assert [reply.versions for reply in replies(core)] == [(0, -1)]
    node.stop(0)


def test_purposes_do_not_wait_for_each_other(
    core: _core.Core, other: _core.Core, other_peer: "Peer"
) -> None:
    core.send(7, other_peer, CREATE_TOPICS, 7, creation(0), PATIENCE_MS)
    slow = request_at(other)
    core.send(8, ("other", *other_peer[1:]), CREATE_TOPICS, 7, creation(0), PATIENCE_MS)
    other.respond([(request_at(other).id, b"to fast")])
    assert [reply.body for reply in replies(core)] == [b"to fast"]
    other.respond([(slow.id, b"to slow")])
    assert [reply.body for reply in replies(core)] == [b"to slow"]


def test_missing_reply_closes_the_connection_at_the_timeout(
    core: _core.Core, other: _core.Core, other_peer: "Peer"
) -> None:
    core.send(7, other_peer, CREATE_TOPICS, 7, creation(1), 50)
    core.send(8, other_peer, CREATE_TOPICS, 7, creation(2), PATIENCE_MS)
    ended = {reply.token: reply.error_code for reply in replies(core, 2)}
    assert ended == {7: REQUEST_TIMED_OUT, 8: NETWORK_EXCEPTION}
    core.send(9, other_peer, CREATE_TOPICS, 7, creation(3), PATIENCE_MS)
    bodies = iter(lambda: request_at(other), None)
    asked = next(request for request in bodies if request.body == creation(3))
    other.respond([(asked.id, b"answered")])
    assert [reply.body for reply in replies(core)] == [b"answered"]


def test_restarted_node_replies_again(core: _core.Core, tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        peer = peer_of(broker)
        core.send(1, peer, METADATA, METADATA_VERSION, METADATA_BODY, PATIENCE_MS)
        assert [reply.error_code for reply in replies(core)] == [0]
    core.send(2, peer, METADATA, METADATA_VERSION, METADATA_BODY, PATIENCE_MS)
    assert replies(core)[0].error_code in (LISTENER_NOT_FOUND, NETWORK_EXCEPTION)
    with Broker(tmp_path, listeners=f"127.0.0.1:{peer[2]}"):
        deadline = core.now_ns() + PATIENCE_NS
        code = NETWORK_EXCEPTION
        while code and core.now_ns() < deadline:
            core.send(3, peer, METADATA, METADATA_VERSION, METADATA_BODY, PATIENCE_MS)
            (reply,) = replies(core)
            code = reply.error_code
        assert code == 0


def test_open_requests_are_bounded(core: _core.Core, other_peer: "Peer") -> None:
    for token in range(10_001):
        core.send(token, other_peer, CREATE_TOPICS, 7, creation(0), PATIENCE_MS)
    (refused,) = replies(core)
    assert (refused.token, refused.error_code) == (10_000, BROKER_NOT_AVAILABLE)
    assert "10000 requests are open" in refused.reason
    core.stop(0)
    assert len(replies(core, 10_000)) == 10_000


@pytest.mark.parametrize(
    "response", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 64, bytes(64), b"\0\0\0\x04abcd"]
)
def test_server_that_is_not_a_kafka_node_is_a_network_error(
    core: _core.Core, response: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        core.send(
            7, ("test", *listener.getsockname()), METADATA, METADATA_VERSION, b"", PATIENCE_MS
        )
        stream, _ = listener.accept()
        with stream:
            stream.sendall(response)
            (reply,) = replies(core)
    assert (reply.token, reply.error_code) == (7, NETWORK_EXCEPTION)


def test_unknown_host_name_is_a_network_error(core: _core.Core) -> None:
    core.send(7, ("test", "nobody.invalid", 9092), METADATA, 12, b"", PATIENCE_MS)
    (reply,) = replies(core)
    assert (reply.token, reply.error_code) == (7, NETWORK_EXCEPTION)


def test_invalid_arguments_are_rejected(core: _core.Core) -> None:
    for port in (-1, 65_536):
        with pytest.raises((OverflowError, TypeError, ValueError)):
            core.send(7, ("test", "127.0.0.1", port), METADATA, 12, b"", 1)
    with pytest.raises(OverflowError):
        core.send(7, ("test", "127.0.0.1", 1), METADATA, 12, b"", -1)
