"""Fixtures that are confluent-kafka's clients of the session's broker.

They import it when first used. What a test made by them is closed after it; when it fails, pytest shows what the
broker knew of its topics and groups, and what its clients complained of.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from .names import name_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

    from pykafka_core import Broker
    from pykafka_core._records import Record as CoreRecord

FLUSH_S = 30.0
_HEARTBEAT_MS = 50
_ERRORS_MAX = 20
_numbers = count(1)


class Record(NamedTuple):
    """A record as `kafka_read_all` returns it; ``timestamp`` is in milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int


class KafkaClients:
    """The clients of one test, and their last errors."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.errors: deque[str] = deque(maxlen=_ERRORS_MAX)

    def config(self, client: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what every client is made with, then what the test wants otherwise."""

        def note(error: object) -> None:
            self.errors.append(f"{client}: {error}")

        return {
            "bootstrap.servers": self.bootstrap_servers,
            "error_cb": note,
            "log_level": 2,  # errors are in the report of a test that fails
            **given,
        }

    def report(self) -> str:
        """Return what the broker knows now."""
        from .report import report

        return report(self.bootstrap_servers, self.errors)


REPORTING = pytest.StashKey[KafkaClients]()


@pytest.fixture
def kafka_clients(kafka_bootstrap_servers: str, request: pytest.FixtureRequest) -> KafkaClients:
    """What the clients of this test share; the other fixtures make them."""
    try:
        import confluent_kafka  # noqa: F401
    except ModuleNotFoundError:
        pytest.fail(
            f"the fixtures of {request.node.name} need confluent-kafka: pip install confluent-kafka",
            pytrace=False,
        )
    clients = KafkaClients(kafka_bootstrap_servers)
    request.node.stash[REPORTING] = clients
    return clients


@pytest.fixture
def kafka_producer(kafka_clients: KafkaClients) -> Iterator["Producer"]:
    """A producer, flushed after the test, which fails if a record was not delivered by then.

    Records with their own ``on_delivery`` are left to the test.
    """
    from .checked_producer import CheckedProducer

    producer = CheckedProducer(kafka_clients.config("producer", {}))
    yield producer
    undelivered = producer.finish(FLUSH_S)
    if undelivered.count:
        pytest.fail(f"{undelivered}\n{kafka_clients.report()}", pytrace=False)


@pytest.fixture
def kafka_consumer(
    kafka_clients: KafkaClients, request: pytest.FixtureRequest
) -> Iterator[Callable[..., "Consumer"]]:
    """A function that makes a consumer: ``kafka_consumer(*topics, group=None, config=None)``.

    It subscribes to the topics, in a fresh group unless one is named, and begins at the first record where the group
    has committed nothing. A member of a classic group sends a heartbeat every 50 ms, so it takes
    part in a rebalance at once; ``heartbeat.interval.ms`` in ``config`` overrides that. After the
    test all are closed at the same time, in other threads.
    """
    from confluent_kafka import Consumer

    made: list[Consumer] = []

    def make(
        *topics: str, group: str | None = None, config: Mapping[str, Any] | None = None
    ) -> Consumer:
        group = group or name_of(request.node.name, next(_numbers))
        given = consumer_config(group, config or {})
        made.append(Consumer(kafka_clients.config(f"consumer of {group}", given)))
        if topics:
            made[-1].subscribe(list(topics))
        return made[-1]

    yield make
    _close(made)


def consumer_config(group: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `kafka_consumer` makes a consumer with, in addition to what every client has."""
    config = {"group.id": group, "auto.offset.reset": "earliest", **given}
    # The broker decides the heartbeats of the other protocol.
    if str(config.get("group.protocol")).lower() != "consumer":
        config.setdefault("heartbeat.interval.ms", _HEARTBEAT_MS)
    return config


def _close(consumers: Sequence["Consumer"]) -> None:
    """Close all at once.

    One whose JoinGroup waits for another member sends its LeaveGroup after the response to that: if
    the other one were closed later, the first would give up after 5 seconds.
    """

    def close(consumer: "Consumer") -> None:
        with suppress(RuntimeError):  # the test closed it
            consumer.close()

    if consumers:
        with ThreadPoolExecutor(len(consumers)) as pool:
            list(pool.map(close, consumers))


@pytest.fixture
def kafka_topic_factory(
    kafka_broker: "Broker", request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """A function that makes a topic and returns its name: ``kafka_topic_factory(partitions=1, config=None)``.

    All are deleted after the test.
    """
    made: list[str] = []

    def make(*, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        name = name_of(request.node.name, next(_numbers), "topic")
        kafka_broker.create_topic(name, partitions, config=config)
        made.append(name)
        return name

    yield make
    for name in made:
        if name in kafka_broker.topics():
            kafka_broker.delete_topic(name)


@pytest.fixture
def kafka_read_all(kafka_clients: KafkaClients) -> Callable[..., list[Record]]:
    """A function that reads a topic: ``kafka_read_all(topic, count=None, timeout=30)``.

    It returns the records that there are when it is called, each partition in its order; with ``count`` it waits until
    there are so many. It joins no group and changes nothing. If the time is over the test fails, with what the broker
    knew.
    """

    def read(topic: str, *, count: int | None = None, timeout: float = FLUSH_S) -> list[Record]:
        from pykafka_core.cli.errors import CliError

        try:
            return _read(kafka_clients.bootstrap_servers, topic, count, timeout)
        except CliError as error:
            text = f"kafka_read_all({topic!r}): {error}\n{kafka_clients.report()}"
            pytest.fail(text, pytrace=False)

    return read


def _read(servers: str, topic: str, count: int | None, timeout: float) -> list[Record]:
    """Read a topic from its beginning to its end, or the first ``count`` records that arrive.

    Raises:
        CliError: It cannot be read, or not within ``timeout`` seconds.
    """
    from pykafka_core.cli.client.wire import cluster
    from pykafka_core.cli.consume.reader import Reader, Start
    from pykafka_core.cli.errors import CliError

    deadline = time.monotonic() + timeout
    with cluster(servers, "cannot read") as found:
        partitions = found.partitions([topic])[topic]
    reader = Reader(
        servers, topic, partitions, Start(), follow=count is not None, patience_s=timeout
    )
    records: list[Record] = []
    with closing(reader.sets()) as sets:
        for partition, one_set in sets:
            records.extend(_record(partition, one) for one in one_set)
            if count is not None and len(records) >= count:
                break
            if time.monotonic() > deadline:
                raise CliError(
                    f"{len(records)} records were read within {timeout:g} s, and no more came"
                )
    return sorted(records[:count], key=lambda one: one[:2])


def _record(partition: int, one: "CoreRecord") -> Record:
    return Record(partition, one.offset, one.key, one.value, list(one.headers), one.timestamp)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the broker knew to the report of a test that failed, while its clients are still open."""
    outcome = yield
    clients = item.stash.get(REPORTING, None)
    if outcome.failed and call.when == "call" and clients is not None:
        outcome.sections.append(("what the Kafka broker knew", clients.report()))
    return outcome
