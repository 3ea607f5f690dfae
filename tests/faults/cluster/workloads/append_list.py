"""Append-list: idempotent producers number their records, and readers follow them."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.faults.cluster.checker import Acknowledged
from tests.faults.cluster.clusters import QUIET
from tests.faults.cluster.workloads.new_epochs import watched
from tests.faults.cluster.workloads.workload import Workload, fatal_errors, read_of
from tests.faults.history import Anomaly, Write
from tests.support.patience import PATIENCE_S, POLL_S, exactly

PRODUCERS = 2
PAUSE_S = exactly(0.002, "the pause between two records: the load stays small")


class NumberedProducer:
    """An idempotent producer with acks=all; a new producer replaces it after a fatal error.

    The cluster does not cause such an error: a leader that stopped cleanly keeps only the last
    batch of a producer, because its snapshot does (Apache Kafka's, too). So a retry of an earlier
    batch is out of order.
    """

    def __init__(self, workload: Workload, name: str) -> None:
        self._workload = workload
        self._name, self._life, self._number = name, 0, 0
        self._waiting: set[str] = set()
        self._producer = self._new()

    def _new(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._workload.cluster.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "batch.num.messages": 50,
                "queue.buffering.max.messages": 2000,
                "message.timeout.ms": int(PATIENCE_S * 1000),
                "request.timeout.ms": 5000,
                **QUIET,
                **watched(self._told_out_of_order),
            }
        )

    @property
    def name(self) -> str:
        return f"{self._name}.{self._life}"

    def produce(self, partition: int) -> None:
        value = f"{self.name}:{self._number}"
        self._number += 1
        try:
            with fatal_errors():
                self._send(partition, value)
        except KafkaException as error:
            # `produce` reports only that an error happened before; `poll` reports the error.
            if not error.args[0].fatal() and error.args[0].code() != KafkaError._FATAL:
                raise
            self._producer.purge()
            self._producer.flush(PATIENCE_S)
            self._producer, self._life = self._new(), self._life + 1

    def _send(self, partition: int, value: str) -> None:
        name, topic = self.name, self._workload.topic
        told = partial(self._told, name)
        try:
            self._producer.produce(topic, value, partition=partition, on_delivery=told)
        except BufferError:
            self._producer.poll(POLL_S)
        else:
            self._waiting.add(value)
            self._workload.writes.append(Write(name, partition, value, acknowledged=False))
            self._producer.poll(0)

    def flush(self) -> None:
        if left := self._producer.flush(2 * PATIENCE_S):
            self._workload.anomalies.append(
                Anomaly("not delivered", f"{left} records of {self.name}")
            )

    def _told_out_of_order(self, node: int) -> None:
        if not self._workload.cluster.is_ours(node):
            self._workload.sent_again |= self._waiting

    def _told(self, name: str, error: KafkaError | None, message: Any) -> None:
        value = message.value().decode()
        self._waiting.discard(value)
        if error is None:
            done = Acknowledged(name, message.partition(), message.offset(), value)
            self._workload.acknowledged.append(done)
        elif error.code() == KafkaError._MSG_TIMED_OUT:
            detail = f"{value} of {name} within {PATIENCE_S:.0f} s"
            self._workload.anomalies.append(Anomaly("not delivered", detail))


class AppendList(Workload):
    """`PRODUCERS` producers, a reader that follows them, and one that seeks every few seconds."""

    topic = "list"

    def clients(self) -> Sequence[Callable[[Random], None]]:
        writers = [partial(self._write, f"p{number}") for number in range(PRODUCERS)]
        return [*writers, partial(self._read, "follower", 1e9), partial(self._read, "jumper", 4.0)]

    def _write(self, name: str, choice: Random) -> None:
        producer = NumberedProducer(self, name)
        while not self.stopping.wait(PAUSE_S):
            producer.produce(choice.randrange(self.partitions))
        producer.flush()

    def _read(self, name: str, stays_s: float, choice: Random) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
        )
        seen = [0] * self.partitions
        assignment = 0
        try:
            while not self.stopping.is_set():
                assignment += 1
                consumer.assign(
                    [
                        TopicPartition(self.topic, index, choice.randint(0, end))
                        for index, end in enumerate(seen)
                    ]
                )
                self._follow(consumer, name, assignment, seen, choice.uniform(0.5, 1.5) * stays_s)
        finally:
            consumer.close()

    def _follow(
        self, consumer: Consumer, name: str, assignment: int, seen: list[int], stays_s: float
    ) -> None:
        until = time.monotonic() + stays_s
        while not self.stopping.is_set() and time.monotonic() < until:
            for message in consumer.consume(500, POLL_S):
                if message.error() is None:
                    read = read_of(message, name, assignment)
                    self.reads.append(read)
                    seen[read.partition] = max(seen[read.partition], read.offset)
                else:
                    self.refused(name, message.error())
