"""Small requests of one client, sent at intervals, and their durations."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

from bench.client import Connection, check_fetched, check_produced, fetch, frame, produce
from bench.data import batch
from bench.members import HEARTBEAT, Member, error_of, find_coordinator, join
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)

TOPIC = "probe"
"""The topic of the probes, with one partition."""

INTERVAL_S = 0.005
API_VERSIONS, CREATE_PARTITIONS = (18, 0), (37, 1)

Ask = Callable[[], None]
Probe = Callable[[str], AbstractContextManager[Ask]]


@contextmanager
def api_versions(bootstrap: str) -> Iterator[Ask]:
    """A request that a network thread handles from memory."""
    question = frame(API_VERSIONS, ApiVersionsRequest())
    with Connection(bootstrap) as connection:

        def ask() -> None:
            assert connection.exchange(question)[:2] == bytes(2)

        yield ask


@contextmanager
def record(bootstrap: str) -> Iterator[Ask]:
    """A record that is produced with acks=1 and then fetched."""
    value, _ = batch(100, 100)
    produced = produce(TOPIC, 0, value)
    with Connection(bootstrap) as connection:

        def ask() -> None:
            offset = check_produced(connection.exchange(produced))
            assert check_fetched(connection.exchange(fetch(TOPIC, 0, offset, 1)))

        yield ask


@contextmanager
def control(bootstrap: str) -> Iterator[Ask]:
    """A request to the controller: to add a partition, only validated."""
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
    question = frame(CREATE_PARTITIONS, request)
    with Connection(bootstrap) as connection:

        def ask() -> None:
            response = decode_response(*CREATE_PARTITIONS, connection.exchange(question))
            assert isinstance(response, CreatePartitionsResponse)
            assert response.results[0].error_code == 0, response

        yield ask


@contextmanager
def heartbeat(bootstrap: str) -> Iterator[Ask]:
    """A heartbeat of the only member of a classic group."""
    find_coordinator(bootstrap)
    member = Member(bootstrap, f"probe-{time.time_ns()}")
    with member.connection:
        join([member])
        question = member.heartbeat()

        def ask() -> None:
            assert error_of(HEARTBEAT, member.connection.exchange(question)) == 0

        yield ask


def waits_ms(ask: Ask, seconds: float) -> list[float]:
    """Send a request every 5 ms, each after the last response; return the waits, and end early if a
    response takes 30 s.

    A late response also counts for each request that would have been sent in the meantime, so that
    many short waits do not hide a few long ones in a percentile.
    """
    waits: list[float] = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        try:
            ask()
        except TimeoutError:
            end = begun
        took = time.perf_counter() - begun
        waits += [(took - late * INTERVAL_S) * 1e3 for late in range(1 + int(took / INTERVAL_S))]
        time.sleep(max(0, INTERVAL_S - took))
    return waits


@contextmanager
def opened(bootstrap: str, probes: Mapping[str, Probe]) -> Iterator[Mapping[str, Ask]]:
    """Open a connection for each probe."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(probe(bootstrap)) for name, probe in probes.items()}


def ask_all(asked: Mapping[str, Ask], seconds: float) -> dict[str, dict[str, float]]:
    """Run each probe in a thread; return its p50, p99 and maximum in ms."""
    with ThreadPoolExecutor(len(asked)) as pool:
        waits = {name: pool.submit(waits_ms, ask, seconds) for name, ask in asked.items()}
        return {name: figures(future.result()) for name, future in waits.items()}


def figures(waits: list[float]) -> dict[str, float]:
    """Return median, 99th percentile and maximum."""
    return {
        "p50_ms": statistics.median(waits),
        "p99_ms": sorted(waits)[len(waits) * 99 // 100],
        "max_ms": max(waits),
    }
