"""``perf latency``: measure the time of one record from a producer to a consumer.

The records are sent one after the other.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_core.cli.client.clients import (
    TIMEOUT_S,
    consumer,
    interruptible,
    kafka_errors,
    producer,
)
from pykafka_core.cli.errors import CliError

from .measure import Measured, check_topic, measure
from .produce import payloads

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_PARTITION = 0
_POLL_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class PerfLatencyOptions:
    """The options of ``perf latency``; ``size`` is the size of a value in bytes."""

    topic: str
    bootstrap: str | None
    records: int
    size: int
    acks: str
    as_json: bool


def perf_latency(options: PerfLatencyOptions) -> None:
    """Send one record at a time to partition 0, and wait until it is read.

    Raises:
        CliError: The topic does not exist, or a record was not read back.
    """
    check_topic(options.bootstrap, options.topic)
    sender = producer(options.bootstrap, {"acks": options.acks, "linger.ms": 0})
    reader = consumer(options.bootstrap, follow=True)
    latency_of = f"a record from a producer to a consumer, acks={options.acks}"
    measured = Measured(kind="latency", topic=options.topic, latency_of=latency_of)

    def work(measured: Measured, show: Callable[[], None]) -> None:
        with kafka_errors(f"cannot measure {options.topic}"):
            _assign_end(reader, options.topic)
            values = payloads(options.size)
            _round_trip(
                sender, reader, options.topic, values[0]
            )  # the first round trip opens the connections
            began = time.perf_counter()
            for number in range(options.records):
                sent = time.perf_counter()
                _round_trip(sender, reader, options.topic, values[number % len(values)])
                now = time.perf_counter()
                measured.latencies.add(now - sent)
                measured.add(options.size)
                measured.seconds = now - began
                show()

    try:
        measure(measured, work, total=options.records, as_json=options.as_json)
    finally:
        reader.close()


def _assign_end(reader: "Consumer", topic: str) -> None:
    """Read from the offset of the next record.

    It is a number, because with "latest" a record sent at once may be missed.
    """
    from confluent_kafka import TopicPartition

    place = TopicPartition(topic, _PARTITION)
    _, end = interruptible(lambda: reader.get_watermark_offsets(place, timeout=TIMEOUT_S))
    reader.assign([TopicPartition(topic, _PARTITION, end)])


def _round_trip(sender: "Producer", reader: "Consumer", topic: str, value: bytes) -> None:
    """Send a record, and read until it arrives; records of other producers are skipped."""
    from confluent_kafka import KafkaError, KafkaException

    sender.produce(topic, value, partition=_PARTITION)
    sender.poll(0)
    deadline = time.perf_counter() + TIMEOUT_S
    while time.perf_counter() < deadline:
        message = reader.poll(_POLL_S)
        sender.poll(0)
        if message is None:
            continue
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if error is None and message.value() == value:
            return
    advice = (
        "see `pykafka-core status`, and check whether the topic's settings reject such a record"
    )
    raise CliError(f"a record did not reach the consumer within {TIMEOUT_S:g} s", advice)
