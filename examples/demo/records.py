"""The records of the demo, and their sending."""

from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pykafka_core.cli.client.clients import producer
from pykafka_core.cli.errors import CliError

from .flights import flights

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

PARTITIONS: Final = 6
PATIENCE_S: Final = 30.0
SHOW_EVERY: Final = 2000

Flight = tuple[str, bytes]
"""The key and the value of a record: carrier, and flight as JSON."""


class Record(NamedTuple):
    """The arguments of a producer."""

    key: str
    value: bytes
    headers: list[tuple[str, bytes]]


def progress_bars(console: Console) -> Progress:
    """Progress bars that disappear in a pipe; each task has a `unit`."""
    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def prepare(progress: Progress, count: int) -> list[Flight]:
    """Read the source first, so that later times only measure the broker and its clients."""
    task = progress.add_task("preparing", total=count, unit="flights")
    source: list[Flight] = []
    for flight in islice(flights(), count):
        source.append(flight)
        if len(source) % SHOW_EVERY == 0:
            progress.update(task, completed=len(source))
    progress.update(task, completed=len(source))
    if len(source) != count:
        raise CliError(f"the source holds {len(source):,} flights instead of {count:,}")
    return source


def send(bootstrap: str, topic: str, records: Collection[Record], progress: Progress) -> None:
    """Send the records in their order, and return when the broker has confirmed all.

    Raises:
        CliError: The broker did not confirm some records.
    """
    failures: list[KafkaError] = []

    def on_delivery(error: "KafkaError | None", _message: "Message") -> None:
        if error is not None:
            failures.append(error)

    client = producer(
        bootstrap,
        {
            "compression.type": "lz4",
            "partitioner": "murmur2_random",  # as in every Java client of Kafka
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 262_144,
        },
    )
    task = progress.add_task("sending", total=len(records), unit="records")
    for number, (key, value, headers) in enumerate(records, 1):
        while True:
            try:
                client.produce(topic, value, key, headers=headers, on_delivery=on_delivery)
                break
            except BufferError:  # the queue is full: some deliveries free space
                client.poll(0.05)
        if number % SHOW_EVERY == 0:
            client.poll(0)
            progress.update(task, completed=number)
    left = client.flush(PATIENCE_S)
    progress.update(task, completed=len(records))
    if failures or left:
        reason = failures[0].str() if failures else "the broker did not confirm them in time"
        raise CliError(f"{len(failures) + left:,} records were not delivered: {reason}")
