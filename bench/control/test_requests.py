"""Requests per second over one connection: one handled by Python, others by Rust."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.client import (
    Connection,
    check_fetched,
    check_produced,
    describe_config,
    fetch,
    init_producer_id,
    produce,
)
from bench.conftest import Timed
from bench.data import batch
from pykafka_core import Broker

IN_FLIGHT = 100


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    data: Path = tmp_path_factory.mktemp("control")
    with Broker(data, durability="os") as broker:
        broker.create_topic("topic")
        with Connection(broker.bootstrap_servers) as connection:
            check_produced(connection.exchange(produce("topic", 0, batch(1000, 100)[0])))
            yield connection


def pipelined(connection: Connection, frame: bytes) -> bytes:
    connection.send_frame(frame * IN_FLIGHT)
    return [connection.receive_frame() for _ in range(IN_FLIGHT)][-1][4:]


FRAMES = {
    "InitProducerId (Python)": init_producer_id(),
    "DescribeConfigs (Python)": describe_config("topic"),
    "Fetch 1 KiB (Rust)": fetch("topic", 0, 0, 1),
    "Produce 100 B (Rust)": produce("topic", 0, batch(1, 100)[0]),
}


def check(name: str, body: bytes) -> None:
    if name.startswith("Fetch"):
        assert check_fetched(body)
    elif name.startswith("Produce"):
        assert check_produced(body) > 0
    elif name.startswith("InitProducerId"):
        assert body[:6] == bytes(6), "throttle time and error code"
    else:
        assert b"retention.ms" in body


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.benchmark(group="control: one request", max_time=0.5)
def test_one_in_flight(timed: Timed, connection: Connection, name: str) -> None:
    check(name, connection.exchange(FRAMES[name]))
    timed(lambda: connection.exchange(FRAMES[name]), records=1)


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.benchmark(group="control: 100 requests in flight", max_time=0.5)
def test_100_in_flight(timed: Timed, connection: Connection, name: str) -> None:
    check(name, pipelined(connection, FRAMES[name]))
    timed(lambda: pipelined(connection, FRAMES[name]), records=IN_FLIGHT)
