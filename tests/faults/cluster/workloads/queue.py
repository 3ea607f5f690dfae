"""A group consumes a producer's records, commits, and loses and gains members at the same time."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.faults.cluster.checker import ClusterHistory, unread_records
from tests.faults.cluster.clusters import QUIET
from tests.faults.cluster.workloads.append_list import NumberedProducer
from tests.faults.cluster.workloads.workload import Workload, read_of
from tests.faults.history import Anomaly, History, OffsetCommitted, OffsetFetched
from tests.support.patience import ATTEMPT_S, PATIENCE_S, POLL_S, exactly

MEMBERS = 3
PAUSE_S = exactly(0.004, "the pause between two records: the load stays small")
STAYS_S = 8.0
"""Average time until a member leaves and returns as another one."""
GROUP = "workers"


class Member:
    """A consumer of the group, from its subscription until it leaves.

    It starts each partition at the committed offset that it gets, and records that offset, so each
    read belongs to one assignment.
    """

    def __init__(self, queue: "Queue", name: str) -> None:
        self._queue, self._name, self._assignment = queue, name, 0
        self._at: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": queue.cluster.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "session.timeout.ms": 3000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
        )
        self._consumer.subscribe([queue.topic], on_assign=self._assigned, on_lost=self._lost)

    def work(self, stays_s: float) -> None:
        """Read and commit until it is time to leave, then leave."""
        until = time.monotonic() + stays_s
        try:
            while time.monotonic() < until and not self._queue.has_read_all():
                self._step()
        finally:
            self._consumer.close()

    def _step(self) -> None:
        read = False
        for message in self._consumer.consume(200, POLL_S):
            if message.error() is None:
                self._queue.reads.append(read_of(message, self._name, self._assignment))
                self._queue.seen.add(message.value().decode())
                self._at[message.partition()] = message.offset() + 1
                read = True
            else:
                self._queue.refused(self._name, message.error())
        if read:
            self._commit()

    def _commit(self) -> None:
        wanted = [TopicPartition(self._queue.topic, *place) for place in self._at.items()]
        self._queue.without_response[self._name] = wanted
        try:
            on_response = self._consumer.commit(offsets=wanted, asynchronous=False)
            done = {one.partition for one in on_response or () if one.error is None}
        except KafkaException:
            done = set()
        ended = time.monotonic()
        del self._queue.without_response[self._name]
        self._queue.commits.extend(
            OffsetCommitted(one.partition, one.offset, one.partition in done, ended)
            for one in wanted
        )

    def _assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        self._assignment += 1
        self._at = {}
        began, told = self._committed(given)
        self._queue.fetches.extend(
            OffsetFetched(one.partition, max(one.offset, -1), began) for one in told
        )
        consumer.assign(
            [TopicPartition(one.topic, one.partition, max(one.offset, 0)) for one in told]
        )

    def _committed(self, given: list[TopicPartition]) -> tuple[float, list[TopicPartition]]:
        """Return the time of the request and the committed offsets; empty after the deadline."""
        while not self._queue.is_over():
            began = time.monotonic()
            try:
                committed = self._consumer.committed(given, ATTEMPT_S)
            except KafkaException:
                continue
            if all(one.error is None for one in committed):
                return began, committed
        return 0.0, []

    def _lost(self, consumer: Consumer, _: Any) -> None:
        self._at = {}
        consumer.unassign()


class Queue(Workload):
    """One producer, and `MEMBERS` members at a time."""

    topic = "queue"

    def __init__(self, cluster: Any, seed: int) -> None:
        super().__init__(cluster, seed)
        self.commits: list[OffsetCommitted] = []
        self.fetches: list[OffsetFetched] = []
        self.seen: set[str] = set()
        self.without_response: dict[str, list[TopicPartition]] = {}
        self._has_written = False
        self._drained_by = float("inf")

    def clients(self) -> Sequence[Callable[[Random], None]]:
        return [self._write, *(partial(self._take_turns, f"m{n}") for n in range(MEMBERS))]

    def has_read_all(self) -> bool:
        """Return whether writing has ended and the group has read all acknowledged records."""
        if not self._has_written:
            return False
        return self.is_over() or all(one.value in self.seen for one in list(self.acknowledged))

    def is_over(self) -> bool:
        """Return whether the deadline of the group has passed."""
        return time.monotonic() > self._drained_by

    def _write(self, choice: Random) -> None:
        producer = NumberedProducer(self, "q")
        while not self.stopping.wait(PAUSE_S):
            producer.produce(choice.randrange(self.partitions))
        producer.flush()
        self._drained_by = time.monotonic() + PATIENCE_S
        self._has_written = True

    def _take_turns(self, name: str, choice: Random) -> None:
        life = 0
        while not self.has_read_all():
            Member(self, f"{name}.{life}").work(choice.uniform(0.3, 1.7) * STAYS_S)
            life += 1

    def clients_history(self) -> History:
        now = time.monotonic()
        hanging = [
            OffsetCommitted(one.partition, one.offset, acknowledged=False, ended=now)
            for wanted in list(self.without_response.values())
            for one in wanted
        ]
        commits = [*self.commits, *hanging]
        return super().clients_history()._replace(commits=commits, fetches=self.fetches)

    def further(self, history: ClusterHistory) -> Iterator[Anomaly]:
        """Check that the group has read everything."""
        return unread_records(history)
