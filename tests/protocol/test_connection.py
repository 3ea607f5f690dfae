"""`protocol.Connection` to a real broker, and to servers that break the protocol."""

import doctest
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from pykafka_core import Broker, protocol
from pykafka_core.errors import UnsupportedVersionError
from pykafka_core.protocol import Connection, ProtocolError, encode_response
from pykafka_core.protocol.connection import encode_frame
from pykafka_core.protocol.messages import (
    ApiVersionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)
from tests.support.patience import PATIENCE_S, exactly

METADATA, HEARTBEAT, LIST_GROUPS, CREATE_TOPICS, DESCRIBE_CLUSTER = 3, 12, 16, 19, 60
SHORT_S = exactly(0.01, "the server never answers")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers) as connection:
        yield connection


@contextmanager
def server(*responses: bytes) -> Iterator[str]:
    """Yield the address of a server that reads a request before each response, then closes."""

    def serve() -> None:
        accepted, _ = listener.accept()
        with accepted, accepted.makefile("rb") as received:
            for response in responses:
                received.read(int.from_bytes(received.read(4)))
                accepted.sendall(struct.pack(">i", len(response)) + response)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve)
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        served.result(PATIENCE_S)


def test_example_of_the_documentation_runs(broker: Broker) -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    (example,) = finder.find(Connection, "Connection", globs={"broker": broker})
    assert runner.run(example).attempted > 2
    assert runner.failures == 0


@pytest.mark.parametrize("version", [0, 8, 9, 12])
def test_request_is_answered_in_its_version(connection: Connection, version: int) -> None:
    """Versions 9 and 12 are flexible, which changes the headers."""
    response = connection.ask(METADATA, version, MetadataRequest(topics=[]), MetadataResponse)
    assert len(response.brokers) == 1


def test_responses_to_several_requests_come_in_their_order(connection: Connection) -> None:
    connection.send(HEARTBEAT, 3, HeartbeatRequest(group_id="g"))
    connection.send(METADATA, 12, MetadataRequest(topics=[]))
    assert connection.receive(HeartbeatResponse).error_code
    assert connection.receive(MetadataResponse).brokers


def test_newest_version_of_both_sides_is_used() -> None:
    apis = [ApiVersionsResponse.ApiVersion(api_key=LIST_GROUPS, min_version=1, max_version=2)]
    described = encode_response(ApiVersionsResponse(api_keys=apis), 3)
    listed = encode_response(ListGroupsResponse(throttle_time_ms=7, error_code=15), 2)
    with server(number(1) + described, number(2) + listed) as address, Connection(address) as one:
        response = one.ask_newest(LIST_GROUPS, 5, ListGroupsRequest(), ListGroupsResponse)
        with pytest.raises(UnsupportedVersionError, match="no version of API 16 up to 0"):
            one.ask_newest(LIST_GROUPS, 0, ListGroupsRequest(), ListGroupsResponse)
        with pytest.raises(UnsupportedVersionError, match="no version of API 3 up to 12"):
            one.ask_newest(METADATA, 12, MetadataRequest(), MetadataResponse)
    assert (response.throttle_time_ms, response.error_code) == (7, 15)


def number(correlation_id: int) -> bytes:
    return correlation_id.to_bytes(4)


def test_versions_are_those_of_the_broker(connection: Connection) -> None:
    assert connection.versions()[CREATE_TOPICS] == (2, 7)
    response = connection.ask_newest(
        CREATE_TOPICS, 99, CreateTopicsRequest(topics=[]), CreateTopicsResponse
    )
    assert response.topics == []


def test_response_of_another_class_is_an_error(connection: Connection) -> None:
    with pytest.raises(TypeError, match="is a DescribeClusterResponse, not MetadataResponse"):
        connection.ask(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(), MetadataResponse)


def test_response_above_the_limit_is_an_error(broker: Broker) -> None:
    text = r"a response has \d+ bytes; the limit is 10"
    with (
        Connection(broker.bootstrap_servers, response_bytes_max=10) as connection,
        pytest.raises(ProtocolError, match=text),
    ):
        connection.ask(METADATA, 12, MetadataRequest(topics=[]), MetadataResponse)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (b"\0\0\0\2\0", "the response belongs to another request"),
        (b"\0\0\0\1\1", "the header of the response has tagged fields"),
        (b"\0\0", "the response belongs to another request"),
        (b"\0\0\0\1", "tagged fields"),
    ],
)
def test_invalid_header_of_a_response_is_an_error(response: bytes, message: str) -> None:
    with (
        server(response) as address,
        Connection(address) as connection,
        pytest.raises(ProtocolError, match=message),
    ):
        connection.ask(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(), DescribeClusterResponse)


def test_connection_that_the_broker_closes_is_an_error() -> None:
    with server() as address, Connection(address) as connection, pytest.raises(ConnectionError):
        connection.ask(METADATA, 12, MetadataRequest(topics=[]), MetadataResponse)


def test_response_that_is_late_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        with (
            Connection(f"{host}:{port}", timeout_s=SHORT_S) as connection,
            pytest.raises(TimeoutError),
        ):
            connection.ask(METADATA, 12, MetadataRequest(topics=[]), MetadataResponse)


def test_encoded_requests_are_sent_as_they_are(connection: Connection) -> None:
    one = encode_frame(METADATA, 8, MetadataRequest(topics=[]), correlation_id=7)
    connection.send_frame(one * 2)
    assert [connection.receive_frame()[:4] for _ in range(2)] == [number(7)] * 2


def test_client_id_may_be_null(connection: Connection) -> None:
    request = MetadataRequest(topics=[])
    connection.send_frame(encode_frame(METADATA, 12, request, client_id=None))
    assert connection.receive_frame()[:5] == number(1) + b"\0"


def test_connection_is_a_name_of_the_package() -> None:
    assert protocol.Connection is Connection
    assert not hasattr(protocol, "Connections")
