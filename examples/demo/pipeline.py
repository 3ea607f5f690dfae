"""The third part: Spark counts each flight once, despite duplicate records and a kill.

Flights are sent up to two times. The driver is a child process (`driver`). After its report of a
batch in the middle, it and all its children are killed at the worst moment: the ledger's database
has the batch, but Spark's checkpoint does not. Another driver continues from the checkpoint and
receives the batch a second time.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.progress import Progress, TaskID

from pykafka_core.cli.client.clients import consumer
from pykafka_core.cli.errors import CliError

from .plots import draw_delays, draw_throughput, print_delays, print_throughput
from .records import PARTITIONS, PATIENCE_S, Flight, Record, progress_bars, send
from .retries import CarrierHour, Delays, delays, with_retries
from .totals import DATABASE, read_delays

if TYPE_CHECKING:
    from pykafka_core import Broker

TOPIC: Final = "flights-with-retries"
OUTPUT_TOPIC: Final = "delays"
BATCHES: Final = 8
KILLED_AFTER: Final = BATCHES // 2
_END_S: Final = 120
_NEEDED: Final = ("pyspark", "pyarrow", "pandas", "matplotlib")
_SKIP: Final = "or leave this part out: --no-spark (make demo SPARK=0)"


@dataclass(slots=True)
class Run:
    """The reports of the drivers: batches in their order, those before the kill first."""

    batches: list[dict[str, Any]] = field(default_factory=list)
    killed_after: int = 0
    written: int | None = None


def check_spark() -> None:
    """Check that everything is installed, before anything runs.

    Raises:
        CliError: Java, PySpark or its Kafka connector is missing.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        install = "pip install 'pykafka_core[spark]' matplotlib"
        raise CliError(f"Spark's part needs {', '.join(missing)}", f"{install}; {_SKIP}")
    from spark_udfs.connector import connector_jars
    from spark_udfs.environment import SparkSetupError, check_java

    try:
        check_java()
        connector_jars()
    except SparkSetupError as error:
        raise CliError(f"Spark's part cannot run: {error}", _SKIP) from error


def count_with_spark(
    broker: "Broker", source: Sequence[Flight], console: Console, plots: Path
) -> None:
    """Count with Spark, compare the totals with the source, and print and plot them.

    Raises:
        CliError: A driver failed, or a flight is missing or counted twice.
    """
    records = with_retries(source)
    broker.create_topic(TOPIC, PARTITIONS)
    broker.create_topic(OUTPUT_TOPIC, PARTITIONS)
    console.print(
        f"\n[bold]Spark[/bold] counts them, though {len(records) - len(source):,} are sent twice: "
        f"{len(records):,} records."
    )
    expected = delays(source)
    with tempfile.TemporaryDirectory(prefix="pykafka-core-demo-spark-") as name:
        run = _count(broker, records, Path(name), console)
        _verify(expected, read_delays(Path(name) / DATABASE), "the database")
    _verify(expected, _read_back(broker.bootstrap_servers, len(expected)), f"topic {OUTPUT_TOPIC}")
    _print(run, expected, console)
    plots.mkdir(parents=True, exist_ok=True)
    draw_delays(expected, plots / "delays-per-carrier.png")
    draw_throughput(run.batches, run.killed_after, plots / "records-per-second.png")
    console.print(f"Plots: {plots}/delays-per-carrier.png, {plots}/records-per-second.png\n")


def _count(broker: "Broker", records: Sequence[Record], folder: Path, console: Console) -> Run:
    """Send the records and count them with Spark; its database and checkpoint are in ``folder``."""
    job = {
        "bootstrap": broker.bootstrap_servers,
        "topic": TOPIC,
        "partitions": PARTITIONS,
        "output_topic": OUTPUT_TOPIC,
        "folder": str(folder),
        # Spark divides a limit among partitions and rounds it: a little more avoids a small last
        # batch.
        "batch_records": len(records) // BATCHES + 2 * PARTITIONS,
    }
    with progress_bars(console) as progress:
        send(broker.bootstrap_servers, TOPIC, records, progress)
        return _run_twice(job, len(records), progress)


def _run_twice(job: Mapping[str, Any], total: int, progress: Progress) -> Run:
    """Run a driver that is killed, then one that ends by itself."""
    run = Run()
    task = progress.add_task("counting", total=total, unit="records")
    with _driver(job) as process:
        # The driver waits for an answer, so it is in the middle even if a small topic is one batch.
        in_time = _follow(process, run, progress, task, kill_at=total * KILLED_AFTER // BATCHES)
        if not in_time:
            raise _failed(job)
        os.killpg(process.pid, signal.SIGKILL)
    run.killed_after = len(run.batches)
    with _driver(job) as process:
        _follow(process, run, progress, task, kill_at=None)
        if process.wait(_END_S) != 0 or run.written is None:
            raise _failed(job)
    return run


@contextmanager
def _driver(job: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A process group: the driver, its Java process and its workers end together."""
    command = [sys.executable, "-m", "examples.demo.driver", json.dumps(job)]
    with (
        (Path(job["folder"]) / "driver.log").open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _follow(
    process: subprocess.Popen[str],
    run: Run,
    progress: Progress,
    task: TaskID,
    *,
    kill_at: int | None,
) -> bool:
    """Note the batches, and let the driver continue after each.

    Return True at ``kill_at`` records, and False at the end of the driver.
    """
    lines, responses = _pipes(process)
    counted = 0
    for line in lines:
        event = json.loads(line)
        if "written" in event:
            run.written = event["written"]
            continue
        run.batches.append(event)
        progress.advance(task, event["records"] - event["redelivered"])
        counted += event["records"]
        if kill_at is not None and counted >= kill_at:
            return True
        with suppress(BrokenPipeError):  # the driver failed; its events end
            responses.write("continue\n")
            responses.flush()
    return False


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdout is not None
    assert process.stdin is not None
    return process.stdout, process.stdin


def _failed(job: Mapping[str, Any]) -> CliError:
    log = (Path(job["folder"]) / "driver.log").read_text().strip().splitlines()
    return CliError("Spark's driver failed", "\n  ".join(log[-15:]))


def _read_back(bootstrap: str, count: int) -> dict[CarrierHour, Delays]:
    """Return the totals that Spark wrote to the topic."""
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    client = consumer(bootstrap)
    client.assign([TopicPartition(OUTPUT_TOPIC, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    found: dict[CarrierHour, Delays] = {}
    ended = 0
    while ended < PARTITIONS:
        messages = client.consume(5000, PATIENCE_S)
        if not messages:
            raise CliError(f"after {len(found):,} totals of {count:,} no more arrived")
        for message in messages:
            if message.error() is not None:  # the end of a partition
                ended += 1
                continue
            row = json.loads(message.value() or b"{}")
            place = row["carrier"], row["hour"]
            if place in found:
                raise CliError(f"topic {OUTPUT_TOPIC} has {place} twice")
            found[place] = Delays(row["flights"], row["landed"], row["minutes"])
    client.close()
    return found


def _verify(
    expected: Mapping[CarrierHour, Delays], found: Mapping[CarrierHour, Delays], where: str
) -> None:
    for place in expected.keys() | found.keys():
        if expected.get(place) != found.get(place):
            raise CliError(
                f"{where} has {found.get(place)} for {' '.join(place)}, the source {expected.get(place)}"
            )


def _print(run: Run, expected: Mapping[CarrierHour, Delays], console: Console) -> None:
    flights = sum(row.flights for row in expected.values())
    killed = run.batches[run.killed_after - 1]
    console.print(
        f"[green]Verified[/green]: {flights:,} flights counted once, in {len(expected):,} carrier-hours; "
        "all are in the partition of their key.\n"
        f"Spark was killed (-9) after batch {killed['batch']} and repeated the batch after its restart: "
        f"{sum(b['redelivered'] for b in run.batches):,} records were known by their offsets, "
        f"{sum(b['duplicates'] for b in run.batches):,} by their message id.\n"
    )
    print_delays(expected, console)
    print_throughput(run.batches, run.killed_after, console)
