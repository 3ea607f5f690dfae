"""``demo``: real data through a real client into an embedded broker, and back.

Every flight becomes a record keyed by its carrier. What is read back is held against the source
record by record: how many there are, what their distances add up to, and that each carrier's
flights come in the order in which they were sent.
"""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .batches import batch_headers
from .clients import consumer, producer
from .errors import CliError
from .flights import FLIGHTS_COUNT, airline_names, flights

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from pykafka_core import Broker

TOPIC = "flights"
PARTITIONS = 6
_LATE_MINUTES = 15
_COUNTERS = {
    "bytes_received": "bytes received",
    "bytes_sent": "bytes sent",
    "requests_produce": "produce requests",
    "requests_fetch": "fetch requests",
}
_SHOW_EVERY = 2000
_BATCH = 5000
_PATIENCE_S = 30.0

NEXT = """[bold]Where to go next[/bold]
  pykafka-core serve --data data           a broker for clients in any language
  pykafka-core topics create orders        then produce, consume, configs
  examples/pytest                          a broker inside your tests
  README.md, docs/SETTINGS.md, docs/DURABILITY.md"""


Flight = tuple[str, bytes]
"""Carrier and flight as JSON: key and value of a record."""


@dataclass(slots=True)
class _Carrier:
    """Sums of one carrier's flights, as they were read back; delays are of arrivals, in minutes."""

    count: int = 0
    landed: int = 0
    delay: int = 0
    late: int = 0
    cancelled: int = 0


@dataclass(slots=True)
class _Read:
    """What came back: each carrier's partitions, and its flights in the order of their offsets."""

    count: int = 0
    partitions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    flights: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def demo(data: Path | None, count: int = FLIGHTS_COUNT) -> None:
    """Run it and print what happened.

    Args:
        data: The broker's data directory, which stays; None takes a temporary one.
        count: How many flights of the source; the first ones.

    Raises:
        CliError: What came back is not what was sent.
    """
    from pykafka_core import Broker

    console = Console()
    started = time.monotonic()
    with _directory(data) as directory, Broker(directory) as broker:
        ready_ms = (time.monotonic() - started) * 1000
        console.print(f"A broker serves at {broker.bootstrap_servers} after {ready_ms:.0f} ms.")
        broker.create_topic(TOPIC, PARTITIONS)
        with _progress(console) as progress:
            source = _prepare(progress, count)
            send_s = _timed(lambda: _send(broker.bootstrap_servers, source, progress))
            read = _Read()
            read_s = _timed(lambda: _read_back(broker.bootstrap_servers, read, count, progress))
            miles = _verify(source, read)
            carriers = _count(read, progress)
        console.print(
            f"[green]Verified[/green]: {read.count:,} records are those that were sent, "
            f"each carrier's in order, {miles:,} miles in all.\n"
        )
        console.print(_delays(carriers, read, airline_names()))
        console.print(_statistics(broker, directory, source, send_s, read_s))
    console.print(NEXT)


@contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    """The given directory, which stays, or a temporary one."""
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="pykafka-core-demo-") as name:
        yield Path(name)


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("flights"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _timed(work: Callable[[], None]) -> float:
    """Seconds that it took."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _prepare(progress: Progress, count: int) -> list[Flight]:
    """Read the source, so that what is measured later is the broker and its clients alone."""
    task = progress.add_task("preparing", total=count)
    source: list[Flight] = []
    for flight in islice(flights(), count):
        source.append(flight)
        if len(source) % _SHOW_EVERY == 0:
            progress.update(task, completed=len(source))
    progress.update(task, completed=len(source))
    if len(source) != count:
        raise CliError(f"the source holds {len(source):,} flights instead of {count:,}")
    return source


def _send(bootstrap: str, source: Sequence[Flight], progress: Progress) -> None:
    """Send every flight; returns once the broker has confirmed all of them."""
    failures: list[KafkaError] = []

    def on_delivery(error: "KafkaError | None", _message: "Message") -> None:
        if error is not None:
            failures.append(error)

    client = producer(
        bootstrap,
        {
            "compression.type": "lz4",
            "partitioner": "murmur2_random",  # as every Kafka client in Java
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 262_144,
        },
    )
    task = progress.add_task("sending", total=len(source))
    for number, (carrier, value) in enumerate(source, 1):
        while True:
            try:
                client.produce(TOPIC, value, carrier, on_delivery=on_delivery)
                break
            except BufferError:  # the queue is full: let some be delivered
                client.poll(0.05)
        if number % _SHOW_EVERY == 0:
            client.poll(0)
            progress.update(task, completed=number)
    left = client.flush(_PATIENCE_S)
    progress.update(task, completed=len(source))
    if failures or left:
        reason = failures[0].str() if failures else "the broker did not confirm them in time"
        raise CliError(f"{len(failures) + left:,} flights were not delivered: {reason}")


def _read_back(bootstrap: str, read: _Read, count: int, progress: Progress) -> None:
    """Read every partition from its beginning to its end."""
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    task = progress.add_task("reading", total=count)
    client = consumer(bootstrap)
    client.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    deadline = time.monotonic() + _PATIENCE_S
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        messages = client.consume(_BATCH, 1.0)
        for message in messages:
            if message.error() is None:
                _take(read, message)
            else:  # the end of a partition: the only event that was asked for
                ended.add(message.partition())
        progress.update(task, completed=read.count)
        if messages:
            deadline = time.monotonic() + _PATIENCE_S
        elif time.monotonic() > deadline:
            raise CliError(f"after {read.count:,} records nothing more came")
    client.close()


def _take(read: _Read, message: "Message") -> None:
    key, value, partition = message.key(), message.value(), message.partition()
    if not isinstance(key, bytes) or not isinstance(value, bytes) or partition is None:
        raise CliError(f"offset {message.offset()} came back without key or value")
    carrier = key.decode()
    read.count += 1
    read.partitions[carrier].add(partition)
    read.flights[carrier].append(value)


def _verify(source: Sequence[Flight], read: _Read) -> int:
    """Hold what came back against the source, record by record.

    Returns:
        The sum of all distances, which is the same on both sides.

    Raises:
        CliError: A record is missing, is there twice, is another, or is out of its key's order.
    """
    if len(source) != read.count:
        raise CliError(f"{len(source):,} records were sent, {read.count:,} came back")
    expected = defaultdict(list)
    for carrier, value in source:
        expected[carrier].append(value)
    for carrier, values in expected.items():
        for number, (before, after) in enumerate(zip(values, read.flights[carrier], strict=True)):
            if before != after:
                raise CliError(f"flight {number} of {carrier} is not the one that was sent")
        if len(read.partitions[carrier]) != 1:
            raise CliError(f"{carrier} is in partitions {sorted(read.partitions[carrier])}")
    sent_miles = sum(_distance(value) for _, value in source)
    read_miles = sum(_distance(v) for values in read.flights.values() for v in values)
    if sent_miles != read_miles:
        raise CliError(f"{sent_miles:,} miles became {read_miles:,}")
    return read_miles


def _distance(value: bytes) -> int:
    distance = json.loads(value)["distance"]
    assert isinstance(distance, int)
    return distance


def _count(read: _Read, progress: Progress) -> dict[str, _Carrier]:
    """Add up the delays of what was read back."""
    task = progress.add_task("counting", total=read.count)
    carriers = {}
    for carrier, values in read.flights.items():
        row = carriers[carrier] = _Carrier()
        for value in values:
            _add(row, json.loads(value))
        progress.advance(task, len(values))
    return carriers


def _add(row: _Carrier, flight: Mapping[str, Any]) -> None:
    row.count += 1
    row.cancelled += flight["dep_time"] is None
    if flight["arr_delay"] is not None:
        row.landed += 1
        row.delay += flight["arr_delay"]
        row.late += flight["arr_delay"] > _LATE_MINUTES


def _delays(carriers: Mapping[str, _Carrier], read: _Read, names: Mapping[str, str]) -> Table:
    title = "Delays per carrier, in minutes of arrival"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)  # fits into 80 columns
    table.add_column("key", no_wrap=True, min_width=3)
    table.add_column("airline", no_wrap=True, overflow="ellipsis")
    for name in ("part.", "flights", "mean", f"> {_LATE_MINUTES}", "cancel."):
        table.add_column(name, justify="right", no_wrap=True, min_width=5)
    mean = {name: row.delay / max(row.landed, 1) for name, row in carriers.items()}
    for carrier in sorted(carriers, key=lambda name: -mean[name]):
        row = carriers[carrier]
        table.add_row(
            carrier,
            names.get(carrier, ""),
            ",".join(map(str, read.partitions[carrier])),
            f"{row.count:,}",
            f"{mean[carrier]:.1f}",
            f"{100 * row.late / max(row.landed, 1):.0f} %",
            f"{100 * row.cancelled / row.count:.1f} %",
        )
    return table


def _statistics(
    broker: "Broker", directory: Path, source: Sequence[Flight], send_s: float, read_s: float
) -> Table:
    headers = [
        h for path in sorted(directory.glob(f"{TOPIC}-*/*.log")) for h in batch_headers(path)
    ]
    stored = sum(header.size for header in headers)
    given = sum(len(carrier) + len(value) for carrier, value in source)
    batches = max(len(headers), 1)
    table = Table(title="The broker", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("batches", f"{len(headers):,}")
    table.add_row(
        "average batch", f"{len(source) / batches:,.0f} records, {stored / batches:,.0f} bytes"
    )
    table.add_row("keys and values", f"{given / 1e6:,.1f} MB")
    table.add_row("bytes on disk, lz4", f"{stored / 1e6:,.1f} MB")
    table.add_row("compression ratio", f"{given / max(stored, 1):.1f}")
    for name, seconds in (("sent and confirmed", send_s), ("read back", read_s)):
        rate = f"{len(source) / seconds:,.0f} records/s, {given / seconds / 1e6:,.0f} MB/s"
        table.add_row(name, rate)
    for name, value in broker.statistics().items():
        if isinstance(value, int) and name in _COUNTERS:
            table.add_row(_COUNTERS[name], f"{value:,}")
    return table
