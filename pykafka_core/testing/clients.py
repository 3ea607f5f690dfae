"""Fixtures for confluent-kafka's clients of the session's broker.

They import confluent-kafka when first used. Clients and topics of a test are closed or deleted
after it. If the test fails, pytest shows the state of its topics and groups on the broker, and the
last errors of its clients.
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
        """Return the settings of all clients, overridden by those that the test gives."""

        def note(error: object) -> None:
            self.errors.append(f"{client}: {error}")

        return {
            "bootstrap.servers": self.bootstrap_servers,
            "error_cb": note,
            "log_level": 2,  # errors are in the report of a failed test
            **given,
        }

    def report(self) -> str:
        """Return the present state of the broker, and the errors of the clients, as text."""
        from .report import report

        return report(self.bootstrap_servers, self.errors)


REPORTING = pytest.StashKey[KafkaClients]()


@pytest.fixture
def kafka_clients(kafka_bootstrap_servers: str, request: pytest.FixtureRequest) -> KafkaClients:
    """The common state of this test's clients; the other fixtures create the clients."""
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
    """A producer. It is flushed after the test, which fails if a record is not delivered by then.

    Records with their own ``on_delivery`` are not checked.
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
    """A function that creates a consumer: ``kafka_consumer(*topics, group=None, config=None)``.

    The consumer subscribes to the topics, in a new group unless one is given, and starts at the
    first record if the group has no committed offset. A member of a classic group sends a heartbeat
    every 50 ms, so it joins a rebalance at once; ``heartbeat.interval.ms`` in ``config`` overrides
    that. After the test all consumers are closed at the same time, on other threads.
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
    """Return the settings of `kafka_consumer`, without those of all clients."""
    config = {"group.id": group, "auto.offset.reset": "earliest", **given}
    # With the consumer protocol, the broker determines the heartbeat interval.
    if str(config.get("group.protocol")).lower() != "consumer":
        config.setdefault("heartbeat.interval.ms", _HEARTBEAT_MS)
    return config


def _close(consumers: Sequence["Consumer"]) -> None:
    """Close all consumers at the same time.

    A consumer whose JoinGroup waits for another member only sends its LeaveGroup after the response
    to the JoinGroup. If the other member were closed later, the first would stop waiting after 5
    seconds.
    """

    def close(consumer: "Consumer") -> None:
        with suppress(RuntimeError):  # the test has already closed it
            consumer.close()

    if consumers:
        with ThreadPoolExecutor(len(consumers)) as pool:
            list(pool.map(close, consumers))


@pytest.fixture
def kafka_topic_factory(
    kafka_broker: "Broker", request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """A function that creates a topic and returns its name: ``kafka_topic_factory(partitions=1,
    config=None)``.

    All topics are deleted after the test.
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

    It returns the records that exist at the time of the call, sorted by partition and offset; with
    ``count`` it waits for that many records. It joins no group and changes nothing. After the
    timeout the test fails, with a report of the broker's state.
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
    """Read a topic from its start to its end, or the first ``count`` records that arrive.

    Raises:
        CliError: The topic cannot be read, or not within ``timeout`` seconds.
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
                    f"{len(records)} records were read within {timeout:g} s, and no more arrived"
                )
    return sorted(records[:count], key=lambda one: one[:2])


def _record(partition: int, one: "CoreRecord") -> Record:
    return Record(partition, one.offset, one.key, one.value, list(one.headers), one.timestamp)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the broker's state to the report of a failed test, while its clients are still open."""
    outcome = yield
    clients = item.stash.get(REPORTING, None)
    if outcome.failed and call.when == "call" and clients is not None:
        outcome.sections.append(("state of the Kafka broker", clients.report()))
    return outcome
