"""Kafka's Java client as a workload: an append list, and transactions that copy a topic.

Each is one JVM (`tests/clients/java/Workload.java`), which prints one event per line.
"""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import IO

from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.cluster.checker import Acknowledged, ClusterHistory, wrong_copies
from tests.faults.cluster.clusters import NODES, QUIET
from tests.faults.cluster.workloads.append_list import PAUSE_S, NumberedProducer
from tests.faults.cluster.workloads.workload import Workload, read_all
from tests.faults.history import Anomaly, Read, Write
from tests.support.evidence.logs import new_log
from tests.support.java import QUICK_TO_START, classpath
from tests.support.patience import PATIENCE_S

READER = "java-follower"


class JavaClient:
    """A JVM that works until `stop`."""

    def __init__(self, *arguments: str) -> None:
        command = [
            "java",
            *QUICK_TO_START,
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-cp",
            classpath(),
            "Workload",
        ]
        with new_log(f"Java client {arguments[0]}") as log:
            self._process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def lines(self) -> Iterator[list[str]]:
        """Yield its output, until it has ended."""
        for line in _open(self._process.stdout):
            yield line.rstrip().split(maxsplit=3)

    def stop(self) -> None:
        """Request its end, after its open work."""
        _open(self._process.stdin).close()

    def end(self) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None, "it was asked for"
    return stream


class JavaWorkload(Workload):
    """The common part of both workloads."""

    def _live(self, client: JavaClient) -> None:
        for line in client.lines():
            self.told(line)
        if code := client.end():
            self.anomalies.append(Anomaly("client failed", f"{self.topic}: ended with {code}"))

    def _stop(self, client: JavaClient) -> None:
        self.stopping.wait()
        client.stop()

    def told(self, line: Sequence[str]) -> None:
        """Process a line of its output."""
        if line[0] == "refused":
            self.anomalies.append(Anomaly("reader out of range", " ".join(line[1:])))


class JavaList(JavaWorkload):
    """An idempotent producer, and a reader that follows it."""

    topic = "java-list"

    def clients(self) -> Sequence[Callable[[Random], None]]:
        of = ("list", self.cluster.bootstrap, self.topic, str(self.partitions), str(self._seed))
        client = JavaClient(*of)
        return [lambda _: self._live(client), lambda _: self._stop(client)]

    def told(self, line: Sequence[str]) -> None:
        match line:
            case ["sent", partition, value]:
                name = value.partition(":")[0]
                self.writes.append(Write(name, int(partition), value, acknowledged=False))
            case ["acked", partition, offset, value]:
                name = value.partition(":")[0]
                place = int(partition), int(offset)
                self.acknowledged.append(Acknowledged(name, *place, value))
            case ["read", partition, offset, value]:
                self.reads.append(Read(READER, 1, int(partition), int(offset), value, 0.0))
            case ["failed", value, *error] if "TimeoutException" in " ".join(error):
                self.anomalies.append(Anomaly("not delivered", f"{value}: {' '.join(error)}"))
            case _:
                super().told(line)


class JavaCopier(JavaWorkload):
    """A librdkafka producer writes records, and a JVM copies them in transactions."""

    topic = "originals"
    copies = "copies"

    @property
    def seen_count(self) -> int:
        """The number of copied records."""
        return self._copied

    def create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, **QUIET})
        made = admin.create_topics([NewTopic(self.copies, self.partitions, len(NODES))])
        made[self.copies].result(PATIENCE_S)
        super().create()
        self._copied = 0

    def clients(self) -> Sequence[Callable[[Random], None]]:
        client = JavaClient("copy", self.cluster.bootstrap, self.topic, self.copies, "copier")
        return [lambda choice: self._write(choice, client), lambda _: self._live(client)]

    def _write(self, choice: Random, client: JavaClient) -> None:
        producer = NumberedProducer(self, "o")
        while not self.stopping.wait(PAUSE_S):
            producer.produce(choice.randrange(self.partitions))
        producer.flush()
        client.stop()

    def told(self, line: Sequence[str]) -> None:
        if line[0] == "copied":
            self._copied += int(line[1])
        else:
            super().told(line)

    def further(self, history: ClusterHistory) -> Iterable[Anomaly]:
        """Check that all records were copied, once and in order."""
        copies = read_all(self.cluster.bootstrap, self.copies, self.partitions)
        return wrong_copies(history.clients.final, copies)
