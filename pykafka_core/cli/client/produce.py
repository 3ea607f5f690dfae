"""``produce``: sends lines of files or of stdin as records."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from pykafka_core.cli.arguments import utf8
from pykafka_core.cli.errors import INTERRUPTED, USAGE, CliError
from pykafka_core.cli.output import print_json

from .clients import connect, kafka_errors, producer
from .topics import pair

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer
    from rich.progress import Progress

_STDIN = Path("-")
_POLL_EVERY = 1000
_FLUSH_S = 0.2
RETRIES = 5
"""A partition that refuses a record this often, within seconds, is broken.

librdkafka would retry for five minutes.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProduceOptions:
    """The options of ``produce``; ``headers`` are NAME=VALUE."""

    topic: str
    files: Sequence[Path]
    bootstrap: str | None
    key_separator: str | None
    partition: int | None
    headers: Sequence[str]
    compression: str
    acks: str
    as_json: bool


class _Deliveries:
    """The outcomes of the records."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0
        self.error: KafkaError | None = None

    def on_delivery(self, error: "KafkaError | None", _message: "Message") -> None:
        if error is None:
            self.count += 1
        else:
            self.failed += 1
            self.error = self.error or error

    def before_a_failure(self, acks: str) -> str:
        """Return a sentence about the lines that were sent; empty if there are none."""
        sent = self.count + self.failed
        verb = "sent" if acks == "0" else "stored"
        if self.error is not None:
            rest = f"the rest was not delivered: {self.error.str()}"
            return f"{self.count:,} of the {sent:,} lines before it were {verb}, {rest}"
        if sent <= 1:
            return f"the line before it was {verb}" if sent else ""
        return f"the {sent:,} lines before it were {verb}"


class _Line(NamedTuple):
    """A line without its end, its number, and the file (or stdin) that it is from."""

    source: str
    number: int
    text: bytes


class Interrupt:
    """The first Ctrl-C stops reading lines, but not their delivery; a second one stops both."""

    def __init__(self) -> None:
        self.is_noted = False
        self.is_reading = True

    def __enter__(self) -> "Interrupt":
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, _number: int, _frame: object) -> None:
        raises = self.is_reading or self.is_noted
        self.is_noted, self.is_reading = True, False
        if raises:
            raise KeyboardInterrupt


def produce(options: ProduceOptions) -> None:
    """Send every line, wait until all are confirmed, and print their number.

    Raises:
        CliError: A file cannot be read, a line cannot be sent, a record was not delivered, or
            Ctrl-C interrupted the reading. Lines that were read before have been sent; the error
            states it.
    """
    utf8(options.topic)
    # otherwise an unreachable broker would be reported after the timeout of a record
    connect(options.bootstrap)
    deliveries = _Deliveries()
    client = producer(
        options.bootstrap,
        {
            "compression.type": options.compression,
            "acks": options.acks,
            "linger.ms": 5,
            "retries": RETRIES,
        },
    )
    headers: list[tuple[str, str | bytes | None]] = [pair(text) for text in options.headers]
    failure = None
    with Interrupt() as interrupt, _progress(options) as progress:
        try:
            failure = _send_lines(client, options, headers, deliveries, progress)
            interrupt.is_reading = False
        except KeyboardInterrupt:  # lines that were read are still delivered
            pass
        while client.flush(_FLUSH_S):
            pass
    if failure is not None:
        advice = deliveries.before_a_failure(options.acks)
        raise CliError(str(failure), advice, exit_code=failure.exit_code) from failure
    if deliveries.error is not None:
        reason = f"{deliveries.failed} of {deliveries.failed + deliveries.count} records"
        error = deliveries.error
        raise CliError(f"{reason} were not delivered: {error.str()}", _advice(error))
    if options.as_json:
        print_json({"topic": options.topic, "produced": deliveries.count})
    else:
        print(f"produced {deliveries.count:,} records to {options.topic}")
    if interrupt.is_noted:
        raise CliError(
            "interrupted: lines that were not read yet are not sent", exit_code=INTERRUPTED
        )


def _advice(error: "KafkaError") -> str:
    from confluent_kafka import KafkaError

    if error.code() == KafkaError.KAFKA_STORAGE_ERROR:
        return (
            "the broker's log names the partition and its fault; if it is damaged, stop the broker and see what "
            "`pykafka-core repair DIR` would cut"
        )
    return ""


def _send_lines(
    client: "Producer",
    options: ProduceOptions,
    headers: list[tuple[str, str | bytes | None]],
    deliveries: _Deliveries,
    progress: "Progress",
) -> CliError | None:
    """Send lines until one cannot be read or sent, and return the reason."""
    line = _Line("", 0, b"")
    try:
        with kafka_errors(lambda: f"line {line.number} of {line.source}"):
            for line in _lines(options.files, progress):
                key, value = _split(line.text, options.key_separator)
                _send(client, options, key, value, headers, deliveries)
                if line.number % _POLL_EVERY == 0:
                    client.poll(0)
    except CliError as error:
        return error
    except OSError as error:
        return CliError(f"cannot read after line {line.number} of {line.source}: {error.strerror}")
    return None


def _send(
    client: "Producer",
    options: ProduceOptions,
    key: bytes | None,
    value: bytes,
    headers: list[tuple[str, str | bytes | None]],
    deliveries: _Deliveries,
) -> None:
    partition = -1 if options.partition is None else options.partition
    while True:
        try:
            client.produce(
                options.topic,
                value,
                key,
                partition,
                on_delivery=deliveries.on_delivery,
                headers=headers,
            )
        except BufferError:  # the queue is full: wait for some deliveries
            client.poll(0.1)
        else:
            return


def _split(line: bytes, separator: str | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(os.fsencode(separator))
    if not found:
        raise ValueError(f"there is no {separator!r} between key and value")
    return key, value


def _lines(files: Sequence[Path], progress: "Progress") -> Iterator[_Line]:
    with ExitStack() as stack:
        for path in files or (_STDIN,):
            stream = _stdin() if path == _STDIN else stack.enter_context(_open(path))
            total = None if path == _STDIN else path.stat().st_size
            source = "stdin" if path == _STDIN else str(path)
            task = progress.add_task(source, total=total)
            for number, line in enumerate(stream, 1):
                progress.advance(task, len(line))
                yield _Line(source, number, line.removesuffix(b"\n").removesuffix(b"\r"))


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise CliError("stdin is closed", "name files, or pipe lines into it", exit_code=USAGE)
    return sys.stdin.buffer


def _open(path: Path) -> "closing[BinaryIO]":
    try:
        return closing(path.open("rb"))
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}", exit_code=USAGE) from error


def _progress(options: ProduceOptions) -> "Progress":
    """Return a progress bar on stderr; disabled if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    shown = sys.stderr.isatty() and not options.as_json and bool(options.files)
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown)
