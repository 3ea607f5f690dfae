"""``perf produce``: measure the records per second, and the time until each acknowledgement."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING

from pykafka_core.cli.client.clients import kafka_errors, producer

from .measure import Measured, check_topic, measure

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

_POLL_EVERY = 100
_FLUSH_S = 0.2
_SEED = 1
_PAYLOADS = 64
"""The number of different values; a codec must not find the same value again and again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PerfProduceOptions:
    """The options of ``perf produce``; ``size`` is the size of a value in bytes."""

    topic: str
    bootstrap: str | None
    records: int
    size: int
    acks: str
    compression: str
    linger_ms: int
    as_json: bool


def perf_produce(options: PerfProduceOptions) -> None:
    """Produce as fast as possible.

    Raises:
        CliError: The topic does not exist, or records were not delivered.
    """
    check_topic(options.bootstrap, options.topic)
    client = producer(
        options.bootstrap,
        {
            "acks": options.acks,
            "compression.type": options.compression,
            "linger.ms": options.linger_ms,
        },
    )
    latency_of = f"a record from produce() to its acknowledgement, acks={options.acks}"
    measured = Measured(kind="produce", topic=options.topic, latency_of=latency_of)

    def work(measured: Measured, show: Callable[[], None]) -> None:
        with kafka_errors(f"cannot produce to {options.topic}"):
            try:
                _send(client, options, measured, show)
            finally:  # also after Ctrl-C: records without an acknowledgement do not count
                client.flush(_FLUSH_S)

    measure(measured, work, total=options.records, as_json=options.as_json)


def payloads(size: int) -> list[bytes]:
    """Return values that are the same in every run.

    Half of each value is random, so that it does not compress to almost nothing.
    """
    numbers = random.Random(_SEED)
    half = size // 2
    return [numbers.randbytes(size - half) + b"x" * half for _ in range(_PAYLOADS)]


def _send(
    client: "Producer", options: PerfProduceOptions, measured: Measured, show: Callable[[], None]
) -> None:
    values = payloads(options.size)

    def on_delivery(error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            measured.failed += 1
            measured.error = measured.error or str(error.str())
            return
        measured.latencies.add(message.latency() or 0.0)
        measured.add(options.size)

    for number in islice(count(), options.records):
        while True:
            try:
                client.produce(options.topic, values[number % _PAYLOADS], on_delivery=on_delivery)
            except BufferError:  # the queue is full: some deliveries free space
                client.poll(0.05)
                show()
            else:
                break
        if number % _POLL_EVERY == 0:
            client.poll(0)
            show()
    while client.flush(_FLUSH_S):
        show()
