"""The common parts of every measurement: its clock, its progress bar, its report and Ctrl-C."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pykafka_core.cli.arguments import utf8
from pykafka_core.cli.client.clients import connect
from pykafka_core.cli.errors import INTERRUPTED, CliError
from pykafka_core.cli.output import print_json, print_table

from .latencies import Latencies

if TYPE_CHECKING:
    from rich.progress import Progress

Kind = Literal["produce", "consume", "latency"]
_MIB = 1024 * 1024
SHOW_EVERY_S = 0.1


@dataclass(kw_only=True, slots=True)
class Measured:
    """The result of one run.

    Attributes:
        latency_of: A description of the measured latencies.
        seconds: The time since the first record.
        failed: The number of records that were not delivered.
    """

    kind: Kind
    topic: str
    latency_of: str
    latencies: Latencies = field(default_factory=Latencies)
    records: int = 0
    bytes: int = 0
    failed: int = 0
    seconds: float = 0.0
    error: str | None = None

    def add(self, size: int) -> None:
        """Count one finished record."""
        self.records += 1
        self.bytes += size


def measure(
    measured: Measured,
    work: Callable[[Measured, Callable[[], None]], None],
    *,
    total: int | None,
    as_json: bool,
) -> None:
    """Run ``work``, and report what it measured.

    ``work`` counts in ``measured``, and calls its second argument now and then to show the
    progress.

    Raises:
        CliError: Records were not delivered, or Ctrl-C ended the run; the result has been reported.
    """
    interrupted = False
    began = time.perf_counter()
    with _progress(as_json) as progress:
        task = progress.add_task(f"{measured.kind} {measured.topic}", total=total)
        shown = began

        def show() -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown > SHOW_EVERY_S:
                shown = now
                progress.update(task, completed=measured.records)

        try:
            work(measured, show)
        except KeyboardInterrupt:
            interrupted = True
        measured.seconds = measured.seconds or time.perf_counter() - began
    if as_json:
        print_json(_as_json(measured, interrupted=interrupted))
    else:
        _print(measured)
    if interrupted:
        raise CliError("interrupted: the result covers the time until then", exit_code=INTERRUPTED)
    if measured.error is not None:
        raise CliError(f"{measured.failed:,} records were not delivered: {measured.error}")


def check_topic(bootstrap: str | None, topic: str) -> int:
    """Return the number of partitions of a topic.

    Raises:
        CliError: No broker answers, or there is no such topic.
    """
    topics = connect(bootstrap)[1].topics
    if utf8(topic) not in topics:
        advice = f"create one: pykafka-core topics create {topic or 'perf'} --partitions 1"
        raise CliError(f"there is no topic {topic}", advice)
    return len(topics[topic].partitions)


def _as_json(measured: Measured, *, interrupted: bool) -> dict[str, object]:
    return {
        "measured": measured.kind,
        "topic": measured.topic,
        "records": measured.records,
        "bytes": measured.bytes,
        "failed": measured.failed,
        "seconds": round(measured.seconds, 3),
        "records_per_second": round(_per_second(measured, measured.records), 1),
        "mib_per_second": round(_per_second(measured, measured.bytes) / _MIB, 3),
        "latency_of": measured.latency_of,
        "latency_ms": measured.latencies.milliseconds(),
        "interrupted": interrupted,
    }


def _print(measured: Measured) -> None:
    rate = _per_second(measured, measured.records)
    speed = _per_second(measured, measured.bytes) / _MIB
    print(
        f"{measured.kind}: {measured.records:,} records in {measured.seconds:.2f} s, "
        f"{rate:,.0f} records/s, {speed:,.1f} MiB/s"
    )
    found = measured.latencies.milliseconds()
    if measured.latencies.count:
        row: dict[str, object] = {name: f"{value} ms" for name, value in found.items()}
        print_table([row], title=f"latency of {measured.latency_of}", empty="")


def _per_second(measured: Measured, count: int) -> float:
    return count / measured.seconds if measured.seconds else 0.0


def _progress(as_json: bool) -> "Progress":
    """Return a progress bar on stderr; it is hidden without a terminal and with JSON."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    shown = sys.stderr.isatty() and not as_json
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown)
