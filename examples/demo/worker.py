"""One member of the demo's group, a process that the demo can kill.

Run it as `python -m examples.demo.worker JOB`. It reads flights, writes their speeds and
commits both in one transaction. It reports each transaction on stdout, as one JSON object per line.
After a line ``pause`` on stdin it stops in the middle of its next transaction, after it has written
records. If it is killed then, its transaction stays open until another process ends it.
"""

import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

from .speeds import speed

if TYPE_CHECKING:
    from confluent_kafka import Message

BATCH_RECORDS = 500
WAIT_S = 0.5
SESSION_TIMEOUT_MS = 6000
"""The shortest default of a broker; the partitions of a killed member wait this long."""


class Job(NamedTuple):
    """The job of a worker; ``name`` is its transactional id, which a replacement keeps."""

    bootstrap: str
    source: str
    target: str
    group: str
    name: str


class Worker:
    """Reads, writes and commits, transaction by transaction.

    Args:
        job: The job to do.
        paused: When it is set, the next transaction stops in its middle.
    """

    def __init__(self, job: Job, paused: threading.Event) -> None:
        from confluent_kafka import Consumer, Producer

        self._job = job
        self._paused = paused
        self._producer = Producer(
            {"bootstrap.servers": job.bootstrap, "transactional.id": job.name, "log_level": 2}
        )
        self._producer.init_transactions(30)
        self._consumer = Consumer(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": job.group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 500,
                "log_level": 2,
            }
        )
        self._consumer.subscribe([job.source])

    def run(self, stopped: threading.Event) -> None:
        """Process records until ``stopped`` is set, and leave the group."""
        while not stopped.is_set():
            messages = [
                message
                for message in self._consumer.consume(BATCH_RECORDS, WAIT_S)
                if message.error() is None
            ]
            if messages:
                self._process(messages)
        self._consumer.close()

    def _process(self, messages: "list[Message]") -> None:
        from confluent_kafka import KafkaException

        self._producer.begin_transaction()
        for message in messages:
            key, value = message.key(), message.value()
            assert isinstance(key, bytes), "flights have keys"
            assert isinstance(value, bytes), "and values"
            self._producer.produce(self._job.target, speed(value), key)
            self._producer.poll(0)
        try:
            self._end()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._producer.abort_transaction(30)
            self._go_back()
            _tell(aborted=len(messages))
            return
        _tell(committed=len(messages))

    def _end(self) -> None:
        """Commit the offsets of the read records together with the written records."""
        if self._paused.is_set():
            self._producer.flush(30)
            _tell(paused=True)
            threading.Event().wait()
        positions = self._consumer.position(self._consumer.assignment())
        read = [place for place in positions if place.offset >= 0]
        group = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(read, group, 30)
        self._producer.commit_transaction(30)

    def _go_back(self) -> None:
        """Read again from the committed offsets; another member may have the partitions now."""
        from confluent_kafka import OFFSET_BEGINNING

        for place in self._consumer.committed(self._consumer.assignment(), 30):
            if place.offset < 0:
                place.offset = OFFSET_BEGINNING
            self._consumer.seek(place)


def main(job: Job) -> None:
    """Work until SIGTERM."""
    stopped, paused = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    threading.Thread(target=_obey, args=(paused, stopped), daemon=True).start()
    worker = Worker(job, paused)
    _tell(ready=True)
    worker.run(stopped)


def _obey(paused: threading.Event, stopped: threading.Event) -> None:
    for line in sys.stdin:
        if line == "pause\n":
            paused.set()
    stopped.set()  # the parent process has ended


def _tell(**event: object) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
