"""The second part: a group of three computes each flight's speed exactly once, despite a kill.

Each member reads, writes and commits in transactions. One is killed in the middle of its
transaction: its records are in the log, but consumers with read_committed never return them.
Another process replaces it under the same name, which aborts the transaction. When the session of
the killed member expires, the other members read its partitions from the last commit.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import Progress

from pykafka_core.cli.client.clients import client_config
from pykafka_core.cli.errors import CliError

from .records import PARTITIONS, Flight, Record, progress_bars, send
from .speeds import speed
from .worker import Job

if TYPE_CHECKING:
    from pykafka_core import Broker

SOURCE: Final = "flights-to-time"
TARGET: Final = "speeds"
GROUP: Final = "speeds"
MEMBERS: Final = 3
FLIGHTS_MAX: Final = 60_000
"""Enough for a visible effect."""
_PATIENCE_S: Final = 60.0


class _Member:
    """The process of a worker, and its reports so far."""

    def __init__(self, broker: "Broker", name: str) -> None:
        job = Job(broker.bootstrap_servers, SOURCE, TARGET, GROUP, name)
        command = [sys.executable, "-m", "examples.demo.worker", json.dumps(job._asdict())]
        self.name = name
        self.committed = 0
        self.is_paused = threading.Event()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def pause(self) -> None:
        """Make it stop in the middle of its next transaction."""
        _pipe(self.process.stdin).write("pause\n")
        _pipe(self.process.stdin).flush()

    def check(self) -> None:
        """Raise an error if the process has ended.

        Raises:
            CliError: It has ended; the error contains the end of its output.
        """
        if self.process.poll() is not None:
            lines = _pipe(self.process.stderr).read().strip().splitlines()
            raise CliError(f"member {self.name} of the demo's group ended", "\n  ".join(lines[-9:]))

    def end(self, how: signal.Signals) -> None:
        """Stop it with this signal."""
        self.process.send_signal(how)
        self.process.wait(_PATIENCE_S)
        self._listener.join(_PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            _pipe(pipe).close()

    def _listen(self) -> None:
        for line in _pipe(self.process.stdout):
            event = json.loads(line)
            self.committed += event.get("committed", 0)
            if "paused" in event:
                self.is_paused.set()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None, "all three are pipes"
    return pipe


def compute_exactly_once(broker: "Broker", source: Sequence[Flight], console: Console) -> None:
    """Compute the speeds, compare them with the source, and print the result.

    Raises:
        CliError: A member failed, or a flight's speed is missing, duplicated or out of order.
    """
    flights = source[:FLIGHTS_MAX]
    for topic in (SOURCE, TARGET):
        broker.create_topic(topic, PARTITIONS)
    console.print(
        f"[bold]A group[/bold] of {MEMBERS} computes {len(flights):,} speeds in transactions; "
        "one of them is killed."
    )
    with progress_bars(console) as progress:
        records = [Record(carrier, value, []) for carrier, value in flights]
        send(broker.bootstrap_servers, SOURCE, records, progress)
        aborted = _run(broker, flights, progress)
    console.print(
        f"[green]Verified[/green]: {len(flights):,} speeds, each once, each carrier's in order. {_told(aborted)}\n"
    )


def _told(aborted: int | None) -> str:
    if aborted is None:
        return "They were too few to kill a member between two of them."
    return f"The member that was killed left {aborted:,} records of an aborted transaction, which no reader received."


def _run(broker: "Broker", flights: Sequence[Flight], progress: Progress) -> int | None:
    """Return the number of aborted records; None if no member was killed."""
    with _group(broker) as members, _Reader(broker.bootstrap_servers) as reader:
        task = progress.add_task("speeds", total=len(flights), unit="flights")
        victim = members[1]
        until = time.monotonic() + _PATIENCE_S
        is_asked = False
        while reader.count < len(flights):
            progress.update(task, completed=reader.count)
            if reader.read():
                until = time.monotonic() + _PATIENCE_S
            elif time.monotonic() > until:
                raise CliError(f"after {reader.count:,} of {len(flights):,} speeds no more arrived")
            for member in members:
                member.check()
            if not is_asked and reader.count * MEMBERS >= len(flights):
                victim.pause()
                is_asked = True
            if victim.is_paused.is_set() and victim in members:
                victim.end(signal.SIGKILL)
                members[1] = _Member(broker, victim.name)
        _verify(flights, reader)
        return None if victim in members else reader.all_records() - len(flights)


@contextmanager
def _group(broker: "Broker") -> Iterator[list[_Member]]:
    members = [_Member(broker, f"speeds-{number}") for number in range(MEMBERS)]
    try:
        yield members
    finally:
        for member in members:
            member.end(signal.SIGTERM)


class _Reader:
    """Reads the committed records of all partitions of the target."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        self._config = client_config(bootstrap) | {
            "group.id": "nobody",
            "isolation.level": "read_committed",
        }
        self._client = Consumer(self._config)
        places = [TopicPartition(TARGET, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        self._client.assign(places)
        self.count = 0
        self.speeds: dict[bytes, list[bytes]] = defaultdict(list)

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def read(self) -> int:
        """Read the records that have arrived, and return their number."""
        messages = [one for one in self._client.consume(5000, 0.2) if one.error() is None]
        for message in messages:
            key, value = message.key(), message.value()
            assert isinstance(key, bytes), "speeds have keys"
            assert isinstance(value, bytes), "and values"
            self.speeds[key].append(value)
        self.count += len(messages)
        return len(messages)

    def all_records(self) -> int:
        """Return the number of all records, including the aborted ones."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        client = Consumer(
            self._config | {"isolation.level": "read_uncommitted", "enable.partition.eof": True}
        )
        places = [TopicPartition(TARGET, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        client.assign(places)
        count = ended = 0
        while ended < PARTITIONS:
            for message in client.consume(5000, 1.0):
                ended += message.error() is not None
                count += message.error() is None
        client.close()
        return count


def _verify(flights: Sequence[Flight], reader: _Reader) -> None:
    reader.read()  # any surplus records
    expected: dict[bytes, list[bytes]] = defaultdict(list)
    for carrier, flight in flights:
        expected[carrier.encode()].append(speed(flight))
    if reader.count != len(flights):
        raise CliError(f"{len(flights):,} flights have {reader.count:,} speeds")
    for key, speeds in expected.items():
        for number, (want, got) in enumerate(zip(speeds, reader.speeds[key], strict=True)):
            if want != got:
                name = key.decode()
                raise CliError(f"speed {number} of {name} is not that of its flight")
