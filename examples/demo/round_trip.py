"""The first part: real data through a real client to an embedded broker, and back.

Every flight becomes a record with its carrier as key. The records that are read back are compared
with the source one by one: their number, the sum of their distances, and the order of each
carrier's flights.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from pykafka_core.cli.client.clients import consumer
from pykafka_core.cli.errors import CliError

from .flights import airline_names
from .records import PARTITIONS, PATIENCE_S, Flight, Record, progress_bars, send

if TYPE_CHECKING:
    from confluent_kafka import Message

    from pykafka_core import Broker

TOPIC = "flights"
_LATE_MINUTES = 15
_COUNTERS = {
    "bytes_received": "bytes received",
    "bytes_sent": "bytes sent",
    "requests_produce": "produce requests",
    "requests_fetch": "fetch requests",
}
_BATCH = 5000


@dataclass(slots=True)
class _Carrier:
    """Sums of one carrier's flights that were read back; delays are of arrivals, in minutes."""

    count: int = 0
    landed: int = 0
    delay: int = 0
    late: int = 0
    cancelled: int = 0


@dataclass(slots=True)
class _Read:
    """The records that were read: each carrier's partitions, and its flights by offset."""

    count: int = 0
    partitions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    flights: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def send_and_read_back(broker: "Broker", source: Sequence[Flight], console: Console) -> None:
    """Send the flights, read them back, compare them with the source, and print the results.

    Raises:
        CliError: The records that were read are not the ones that were sent.
    """
    broker.create_topic(TOPIC, PARTITIONS)
    records = [Record(carrier, value, []) for carrier, value in source]
    with progress_bars(console) as progress:
        send_s = _timed(lambda: send(broker.bootstrap_servers, TOPIC, records, progress))
        read = _Read()
        read_s = _timed(lambda: _read_back(broker.bootstrap_servers, read, len(source), progress))
        miles = _verify(source, read)
        carriers = _count(read, progress)
    console.print(
        f"[green]Verified[/green]: {read.count:,} records are those that were sent, "
        f"each carrier's in order, {miles:,} miles in all.\n"
    )
    console.print(_delays(carriers, read, airline_names()))
    console.print(_statistics(broker.statistics(), source, send_s, read_s))


def read_back(bootstrap: str, source: Sequence[Flight], progress: Progress) -> int:
    """Read the topic of a cluster, and compare it with the source.

    Returns:
        The sum of all distances.

    Raises:
        CliError: A record is missing, duplicated, different, or out of its key's order.
    """
    read = _Read()
    _read_back(bootstrap, read, len(source), progress)
    return _verify(source, read)


def _timed(work: Callable[[], None]) -> float:
    """Run `work`, and return the seconds that it took."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _read_back(bootstrap: str, read: _Read, count: int, progress: Progress) -> None:
    """Read every partition from its beginning to its end."""
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    task = progress.add_task("reading", total=count, unit="flights")
    client = consumer(bootstrap)
    client.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    deadline = time.monotonic() + PATIENCE_S
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        messages = client.consume(_BATCH, 1.0)
        for message in messages:
            if message.error() is None:
                _take(read, message)
            else:  # the end of a partition, the only event that is enabled
                ended.add(message.partition())
        progress.update(task, completed=read.count)
        if messages:
            deadline = time.monotonic() + PATIENCE_S
        elif time.monotonic() > deadline:
            raise CliError(f"after {read.count:,} records no more arrived")
    client.close()


def _take(read: _Read, message: "Message") -> None:
    key, value, partition = message.key(), message.value(), message.partition()
    if not isinstance(key, bytes) or not isinstance(value, bytes) or partition is None:
        raise CliError(f"offset {message.offset()} was read back without key or value")
    carrier = key.decode()
    read.count += 1
    read.partitions[carrier].add(partition)
    read.flights[carrier].append(value)


def _verify(source: Sequence[Flight], read: _Read) -> int:
    """Compare the records that were read with the source, one by one.

    Returns:
        The sum of all distances, which is the same on both sides.

    Raises:
        CliError: A record is missing, duplicated, different, or out of its key's order.
    """
    if len(source) != read.count:
        raise CliError(f"{len(source):,} records were sent, {read.count:,} were read back")
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
    """Add up the delays of the records that were read."""
    task = progress.add_task("counting", total=read.count, unit="flights")
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
        table.add_column(name, justify="right", no_wrap=True, min_width=max(5, len(name)))
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
    counted: Mapping[str, int], source: Sequence[Flight], send_s: float, read_s: float
) -> Table:
    given = sum(len(carrier) + len(value) for carrier, value in source)
    batches, stored = counted["batches_appended"], counted["bytes_appended"]
    records = counted["records_appended"]
    table = Table(title="The broker", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("batches", f"{batches:,}")
    table.add_row(
        "average batch", f"{records / batches:,.0f} records, {stored / batches:,.0f} bytes"
    )
    table.add_row("keys and values", f"{given / 1e6:,.1f} MB")
    table.add_row("bytes on disk, lz4", f"{stored / 1e6:,.1f} MB")
    ratio = counted["bytes_appended_uncompressed"] / stored
    table.add_row("compression ratio", f"{ratio:.1f}")
    for name, seconds in (("sent and confirmed", send_s), ("read back", read_s)):
        rate = f"{len(source) / seconds:,.0f} records/s, {given / seconds / 1e6:,.0f} MB/s"
        table.add_row(name, rate)
    for name, label in _COUNTERS.items():
        table.add_row(label, f"{counted[name]:,}")
    return table
