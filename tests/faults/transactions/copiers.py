"""Processes that copy topics in transactions, and readers of their topics."""

import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from pykafka_core.protocol import messages as m
from tests.faults.raw import NONE, Keys
from tests.faults.transactions.copier_child import QUICK
from tests.support.evidence.logs import watch
from tests.support.java import classpath
from tests.support.patience import PATIENCE_S, POLL_S
from tests.support.wire import Connection

CHILD = "tests.faults.transactions.copier_child"
JVM = ("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m")


class Copy(NamedTuple):
    """A topic, and the topic with the same number of partitions to which it is copied."""

    source: str
    output: str


class Copier:
    """One process. Its name is also its transactional id, which every start uses."""

    def __init__(self, name: str, command: Iterable[str], log: Path) -> None:
        self.name, self._command, self._log = name, list(command), log
        self._process: subprocess.Popen[bytes] | None = None
        self.failures: list[str] = []

    def start(self) -> None:
        watch(f"copier {self.name}", self._log)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def is_running(self) -> bool:
        """Also store the failure of a process that ended itself with an error."""
        if self._process is None:
            return False
        code = self._process.poll()
        if code is not None:
            self._process = None
            if code != 0:
                self.failures.append(f"{code}: {self._log.read_text()[-4000:]}")
        return code is None

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        if self.is_running():
            assert self._process is not None
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None


def java_copier(
    bootstrap: str, name: str, copy: Copy, timeout_ms: int, size: int, log: Path
) -> Copier:
    """Return Kafka's own copier, in the group `copiers`.

    It ends when it has read the records that existed when it got its partitions.
    """
    tool = "org.apache.kafka.tools.TransactionalMessageCopier"
    options = {
        "--broker-list": bootstrap,
        "--input-topic": copy.source,
        "--input-partition": "-1",
        "--output-topic": copy.output,
        "--transactional-id": name,
        "--consumer-group": "copiers",
        "--transaction-size": str(size),
        "--transaction-timeout": str(timeout_ms),
    }
    pairs = [word for pair in options.items() for word in pair]
    flags = ("--group-mode", "--use-group-metadata", "--enable-random-aborts")
    return Copier(name, [*JVM, "-cp", classpath(), tool, *pairs, *flags], log)


def librdkafka_copier(bootstrap: str, name: str, copy: Copy, timeout_ms: int, log: Path) -> Copier:
    arguments = (bootstrap, copy.source, copy.output, name, str(timeout_ms))
    return Copier(name, [sys.executable, "-m", CHILD, *arguments], log)


class Feeder:
    """Fills topics with keyed values; each value is written once."""

    def __init__(self, bootstrap: str, keys: int) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUICK}
        self._producer, self._keys = Producer(settings), keys
        self.fed: Counter[str] = Counter()

    def feed(self, topic: str, count: int) -> None:
        for number in range(self.fed[topic], self.fed[topic] + count):
            key = f"{topic}-{number % self._keys}"
            self._producer.produce(topic, b"%d" % number, key.encode())
            self._producer.poll(0)
        self.fed[topic] += max(count, 0)

    def flush(self) -> None:
        assert self._producer.flush(PATIENCE_S) == 0


Values = dict[bytes, list[int]]
"""The values of each key, in the order of its partition."""


class Watcher(threading.Thread):
    """Continuously reads the committed records of some topics, and counts them."""

    def __init__(self, bootstrap: str, topics: Iterable[str], partitions: int) -> None:
        super().__init__(name="watcher")
        self.values: dict[str, Values] = {topic: defaultdict(list) for topic in topics}
        self.counts: Counter[str] = Counter()
        self.stopping = threading.Event()
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            **QUICK,
        }
        self._places = [
            TopicPartition(topic, index, OFFSET_BEGINNING)
            for topic in self.values
            for index in range(partitions)
        ]

    def run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.assign(self._places)
        while not self.stopping.is_set():
            for message in consumer.consume(500, POLL_S):
                if message.error() is None:
                    self._note(message)
        consumer.close()

    def _note(self, message: Any) -> None:
        self.values[message.topic()][message.key()].append(int(message.value()))
        self.counts[message.topic()] += 1


class Stall(NamedTuple):
    """How long a partition's last stable offset was stuck below its high watermark."""

    seconds: float
    topic: str
    partition: int
    offset: int


Ends = dict[tuple[str, int], int]
"""End offsets by topic and partition."""


class StableOffsets(threading.Thread):
    """Polls the end offsets of partitions, and stores the longest stall."""

    def __init__(self, bootstrap: str, partitions: dict[str, int]) -> None:
        super().__init__(name="stable offsets")
        self.longest = Stall(0.0, "", 0, 0)
        self.comparisons = 0
        self.stopping = threading.Event()
        self._address, self._partitions = bootstrap, partitions
        self._stuck: dict[tuple[str, int], tuple[int, float]] = {}

    def run(self) -> None:
        while not self.stopping.wait(POLL_S):
            try:
                with Connection(self._address) as connection:
                    self._watch(connection)
            except (OSError, AssertionError):
                continue  # The broker is down; the stall continues.

    def _watch(self, connection: Connection) -> None:
        while not self.stopping.wait(POLL_S):
            # First the high watermark: it never decreases, so a stable offset below it is lag.
            ends = self._ends(connection, isolation=0)
            self._compare(ends, self._ends(connection, isolation=1))

    def _ends(self, connection: Connection, isolation: int) -> Ends:
        asked = m.ListOffsetsRequest
        topics = [
            asked.ListOffsetsTopic(
                name=name,
                partitions=[
                    asked.ListOffsetsPartition(partition_index=index, timestamp=-1)
                    for index in range(count)
                ],
            )
            for name, count in self._partitions.items()
        ]
        request = asked(replica_id=-1, isolation_level=isolation, topics=topics)
        return {
            (topic.name, row.partition_index): row.offset
            for topic in connection.ask(Keys.LIST_OFFSETS, 9, request).topics
            for row in topic.partitions
            if row.error_code == NONE
        }

    def _compare(self, ends: Ends, stable: Ends) -> None:
        now = time.monotonic()
        self.comparisons += 1
        for place in ends.keys() & stable.keys():
            if stable[place] >= ends[place]:
                self._stuck.pop(place, None)
                continue
            offset, since = self._stuck.get(place, (-1, now))
            if offset != stable[place]:
                offset, since = self._stuck[place] = stable[place], now
            self.longest = max(self.longest, Stall(now - since, *place, offset))
