"""Producers commit and abort transactions; readers of both isolation levels follow them."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.faults.cluster.checker import Acknowledged, ClusterHistory, Stable
from tests.faults.cluster.clusters import QUIET, Cluster
from tests.faults.cluster.workloads.workload import Workload, fatal_errors, read_of
from tests.faults.history import Anomaly, End, History, Outcome, Write
from tests.support.patience import ATTEMPT_S, PATIENCE_S, POLL_S

PRODUCERS = 2
RECORDS_MAX = 5


class Transactions(Workload):
    """`PRODUCERS` transactional ids, a read_committed reader and a read_uncommitted one."""

    topic = "transactions"

    def __init__(self, cluster: Cluster, seed: int) -> None:
        super().__init__(cluster, seed)
        self.ends: list[End] = []

    def clients(self) -> Sequence[Callable[[Random], None]]:
        writers = [partial(self._live, f"t{number}") for number in range(PRODUCERS)]
        return [*writers, partial(self._read, True), partial(self._read, False)]

    def _live(self, name: str, choice: Random) -> None:
        """Run transactions; after an error that is not an abort, with a new producer of the id."""
        number = life = 0
        while not self.stopping.is_set():
            life += 1
            producer = self._new(name)
            try:
                with fatal_errors():
                    self._again(producer.init_transactions)
                    while not self.stopping.is_set():
                        number += 1
                        self._transact(producer, f"{name}.{life}", f"{name}-{number}", choice)
            except KafkaException:
                producer.purge()
        self._end_what_is_open(name)

    def _new(self, name: str) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": 20000,
                "linger.ms": 2,
                "request.timeout.ms": 5000,
                **QUIET,
            }
        )

    def _end_what_is_open(self, name: str) -> None:
        """Start a new producer, which ends its predecessor's transaction."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                self._again(self._new(name).init_transactions)
            except KafkaException:
                continue
            else:
                return
        self.anomalies.append(Anomaly("no progress", f"{name} cannot begin"))

    def _again(self, call: Callable[[float], None]) -> None:
        """Repeat a call until it has an outcome.

        Raises:
            KafkaException: Its outcome is an error.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                call(ATTEMPT_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return

    def _transact(self, producer: Producer, name: str, transaction: str, choice: Random) -> None:
        began, outcome = time.monotonic(), Outcome.ABORTED
        try:
            producer.begin_transaction()
            self._write(producer, name, transaction, choice)
            began = time.monotonic()
            if choice.random() < 0.7:
                outcome = Outcome.UNKNOWN
                outcome = self._commit(producer)
            else:
                # librdkafka may end a transaction unknown to the coordinator, a fatal error.
                producer.flush(ATTEMPT_S)
                self._again(producer.abort_transaction)
        finally:
            self.ends.append(End(transaction, outcome, began, time.monotonic()))

    def _write(self, producer: Producer, name: str, transaction: str, choice: Random) -> None:
        for place in range(choice.randint(1, RECORDS_MAX)):
            partition, value = choice.randrange(self.partitions), f"{transaction}:{place}"
            self.writes.append(Write(name, partition, value, False, transaction))
            producer.produce(
                self.topic, value, partition=partition, on_delivery=partial(self._told, name)
            )
        producer.poll(0)
        time.sleep(choice.uniform(0.0, 0.05))

    def _commit(self, producer: Producer) -> Outcome:
        """Commit, or abort what the coordinator did not accept; return the outcome."""
        try:
            self._again(producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._again(producer.abort_transaction)
            return Outcome.ABORTED
        return Outcome.COMMITTED

    def _told(self, name: str, error: Any, message: Any) -> None:
        if error is None:
            place = message.partition(), message.offset()
            self.acknowledged.append(Acknowledged(name, *place, message.value().decode()))

    def _read(self, read_committed: bool, _: Random) -> None:
        isolation = "read_committed" if read_committed else "read_uncommitted"
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": isolation,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
        )
        consumer.assign([TopicPartition(self.topic, index, 0) for index in range(self.partitions)])
        try:
            while not self.stopping.is_set():
                for message in consumer.consume(500, POLL_S):
                    if message.error() is None:
                        read = read_of(message, isolation, 1, read_committed=read_committed)
                        self.reads.append(read)
                    else:
                        self.refused(isolation, message.error())
        finally:
            consumer.close()

    def clients_history(self) -> History:
        return super().clients_history()._replace(ends=self.ends)

    def history(self) -> ClusterHistory:
        """Add the stable ends; wait for them, because markers are written after the response."""
        deadline = time.monotonic() + PATIENCE_S
        found = self._stable()
        while _is_stuck(found) and time.monotonic() < deadline:
            time.sleep(0.1)
            found = self._stable()
        return super().history()._replace(stable=found)

    def _stable(self) -> list[Stable]:
        ends = [self._ends(level) for level in IsolationLevel]
        committed, everything = ends[1], ends[0]
        return [
            Stable(f"{self.topic}-{index}", committed[index], everything[index])
            for index in range(self.partitions)
        ]

    def _ends(self, level: IsolationLevel) -> list[int]:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, **QUIET})
        asked = {
            TopicPartition(self.topic, index): OffsetSpec.latest()
            for index in range(self.partitions)
        }
        responses = admin.list_offsets(asked, isolation_level=level, request_timeout=PATIENCE_S)
        by_partition = {
            place.partition: response.result().offset for place, response in responses.items()
        }
        return [by_partition[index] for index in range(self.partitions)]


def _is_stuck(found: Sequence[Stable]) -> bool:
    return any(one.last_stable_offset != one.high_watermark for one in found)
