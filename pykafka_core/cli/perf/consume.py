"""``perf consume``: measure the records per second of a consumer, and the time of its polls."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_core.cli.client.clients import consumer, kafka_errors

from .measure import Measured, check_topic, measure

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_BATCH = 1000
_POLL_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class PerfConsumeOptions:
    """The options of ``perf consume``; without ``records`` it reads to the end."""

    topic: str
    bootstrap: str | None
    records: int | None
    as_json: bool


def perf_consume(options: PerfConsumeOptions) -> None:
    """Read a topic from its beginning.

    Raises:
        CliError: The topic does not exist, or cannot be read.
    """
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    count = check_topic(options.bootstrap, options.topic)
    client = consumer(options.bootstrap)
    latency_of = f"a poll until it has something, of at most {_BATCH:,} records"
    measured = Measured(kind="consume", topic=options.topic, latency_of=latency_of)

    def work(measured: Measured, show: Callable[[], None]) -> None:
        with kafka_errors(f"cannot consume {options.topic}"):
            client.assign(
                [TopicPartition(options.topic, p, OFFSET_BEGINNING) for p in range(count)]
            )
            _read(client, count, options.records, measured, show)

    try:
        measure(measured, work, total=options.records, as_json=options.as_json)
    finally:
        client.close()


def _read(
    client: "Consumer",
    partitions_count: int,
    records_max: int | None,
    measured: Measured,
    show: Callable[[], None],
) -> None:
    """Count records up to the end of every partition; the time ends with the last record."""
    began = time.perf_counter()
    ended: set[int | None] = set()
    while len(ended) < partitions_count:
        asked = time.perf_counter()
        # `consume` waits until a batch is full; only `poll` returns with the first record.
        first = client.poll(_POLL_S)
        found = () if first is None else (first, *client.consume(_BATCH - 1, 0))
        if _count(found, records_max, measured, ended):
            now = time.perf_counter()
            measured.latencies.add(now - asked)
            measured.seconds = now - began
        show()
        if measured.records == records_max:
            return


def _count(
    found: "tuple[Message, ...]",
    records_max: int | None,
    measured: Measured,
    ended: set[int | None],
) -> int:
    """Count the records of a poll, and return their number."""
    from confluent_kafka import KafkaError, KafkaException

    before = measured.records
    for message in found:
        error = message.error()
        if error is None:
            if measured.records != records_max:
                measured.add(len(message.value() or b"") + len(message.key() or b""))
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            raise KafkaException(error)
    return measured.records - before
