"""The common part of all workloads: a topic, client threads, and their records."""

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, ClassVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.cluster.checker import Acknowledged, ClusterHistory, check
from tests.faults.cluster.clusters import NODES, QUIET, Cluster
from tests.faults.history import Anomaly, History, Read, Write
from tests.support.patience import PATIENCE_S, POLL_S

NICE = 10
"""Niceness of clients: librdkafka spins while no leader responds, and would slow the nodes."""


class Workload(ABC):
    """One topic and its clients, from `start` to `stop`; then `history` has their actions.

    Attributes:
        topic: Created by `create`, with three replicas.
        progress: Acknowledged writes so far; grows while the cluster serves.
        anomalies: Responses to clients that must not occur.
        sent_again: Values in doubt when a node that is not ours made their producer take a new
            epoch.
    """

    topic: ClassVar[str]
    partitions: ClassVar[int] = 3

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.writes: list[Write] = []
        self.acknowledged: list[Acknowledged] = []
        self.reads: list[Read] = []
        self.anomalies: list[Anomaly] = []
        self.sent_again: set[str] = set()
        self.stopping = threading.Event()
        self._seed = seed
        self._threads: list[threading.Thread] = []

    @property
    def progress(self) -> int:
        return len(self.acknowledged)

    @property
    def seen_count(self) -> int:
        """Number of records that readers got so far; grows like `progress`."""
        return len(self.reads)

    def create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, **QUIET})
        admin.create_topics([NewTopic(self.topic, self.partitions, len(NODES))])[self.topic].result(
            PATIENCE_S
        )

    def start(self) -> None:
        for place, client in enumerate(self.clients()):
            choice = Random(f"{self._seed} {self.topic} {place}")
            thread = threading.Thread(target=self._guarded, args=(client, choice), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Return when all clients have ended; a client that does not end is an anomaly."""
        self.stopping.set()
        deadline = time.monotonic() + 2 * PATIENCE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self.anomalies.append(Anomaly("stuck client", f"{self.topic}: {thread.name}"))

    def refused(self, consumer: str, error: KafkaError) -> None:
        """Record a consumer's error: an offset out of range is an anomaly."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self.anomalies.append(Anomaly("reader out of range", f"{consumer}: {error.str()}"))

    def _guarded(self, client: Callable[[Random], None], choice: Random) -> None:
        # Each thread sets its own; threads that it starts inherit it.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        try:
            client(choice)
        except Exception as error:
            # A callback during the end of a client may raise its own error, caused by the client's.
            told = " from ".join(repr(one) for one in (error, error.__cause__) if one is not None)
            self.anomalies.append(Anomaly("client failed", f"{self.topic}: {told}"))

    @abstractmethod
    def clients(self) -> Sequence[Callable[[Random], None]]:
        """Return the functions that run in threads until `stopping`."""

    def clients_history(self) -> History:
        """Return the clients' records; `history` adds the last read."""
        on_response = {one.value for one in self.acknowledged}
        writes = [one._replace(acknowledged=one.value in on_response) for one in self.writes]
        return History(writes=writes, reads=list(self.reads), sent_again=frozenset(self.sent_again))

    def history(self) -> ClusterHistory:
        """Return the whole history, with the final state."""
        final = read_all(self.cluster.bootstrap, self.topic, self.partitions)
        return ClusterHistory(
            clients=self.clients_history()._replace(final=final),
            acknowledged=list(self.acknowledged),
        )

    def judge(self) -> list[Anomaly]:
        """Return all anomalies, once the cluster has recovered and `stop` has returned."""
        history = self.history()
        if again := history.clients.sent_again:
            print(
                f"  {self.topic}: {len(again)} records were in doubt when Apache Kafka led to a new epoch"
            )
        return self.anomalies + check(history) + list(self.further(history))

    def further(self, _: ClusterHistory) -> Iterable[Anomaly]:
        """Check rules of this workload only."""
        return ()


def read_all(bootstrap: str, topic: str, partitions: int) -> list[Read]:
    """Return the records that a new read_committed consumer finds, up to the current ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "final",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            **QUIET,
        }
    )
    reads: list[Read] = []
    try:
        ends = {
            index: consumer.get_watermark_offsets(TopicPartition(topic, index), PATIENCE_S)[1]
            for index in range(partitions)
        }
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in ends])
        deadline = time.monotonic() + PATIENCE_S
        while not _is_at(consumer, topic, ends) and time.monotonic() < deadline:
            for message in consumer.consume(1000, POLL_S):
                if message.error() is not None:
                    raise KafkaException(message.error())
                reads.append(read_of(message, "final", 0))
    finally:
        consumer.close()
    return reads


def _is_at(consumer: Consumer, topic: str, ends: dict[int, int]) -> bool:
    """Return whether all was read below the ends; positions move with the next record or marker."""
    at = consumer.position([TopicPartition(topic, index) for index in ends])
    return all(one.offset >= ends[one.partition] or not ends[one.partition] for one in at)


@contextmanager
def fatal_errors() -> Iterator[None]:
    """Make a producer's calls raise a fatal error also if a delivery report accompanies it.

    confluent-kafka's `poll` reports the delivery while its error is already set, and Python turns
    that into a SystemError.

    Raises:
        KafkaException: A call raised it, or a SystemError that it caused.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def read_of(message: Any, consumer: str, assignment: int, *, read_committed: bool = True) -> Read:
    value = message.value().decode()
    at = time.monotonic()
    place = message.partition(), message.offset()
    return Read(consumer, assignment, *place, value, at, read_committed)
