"""``consume``: print the records of a topic; `consume_group` does it in a consumer group."""

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import NamedTuple

from pykafka_core._records import Record
from pykafka_core.cli.arguments import int64, time_ms
from pykafka_core.cli.client.clients import TIMEOUT_S, connect
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.output import json_bytes, print_json

from .reader import EARLIEST, LATEST, Reader, Start


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumeOptions:
    """The options of ``consume``; no partitions mean all of them."""

    topic: str
    group: str | None
    bootstrap: str | None
    partitions: Sequence[int]
    start: str
    count: int | None
    follow: bool
    keys: bool
    headers: bool
    as_json: bool


def consume(options: ConsumeOptions) -> None:
    """Print records from the requested start to the end, or until Ctrl-C.

    Raises:
        CliError: The topic, a partition or the start does not exist.
    """
    partitions, start = partitions_of(options), _start(options)
    reader = Reader(
        options.bootstrap,
        options.topic,
        partitions,
        start,
        follow=options.follow,
        patience_s=math.inf if options.follow else TIMEOUT_S,
    )
    with suppress(KeyboardInterrupt):
        _print_all(reader, options)


def _print_all(reader: Reader, options: ConsumeOptions) -> None:
    """Print records up to ``--max``, or to the end of every partition unless it follows."""
    left = options.count
    with closing(reader.sets()) as sets:
        for partition, records in sets:
            for record in records:
                if left == 0:
                    return
                print_record(_shown(options.topic, partition, record), options)
                left = None if left is None else left - 1
            if left == 0:
                return
            sys.stdout.flush()  # before a fetch that may wait


def partitions_of(options: ConsumeOptions) -> list[int]:
    """Return the requested partitions, or all partitions of the topic.

    Raises:
        CliError: No broker answers, or the topic or a partition does not exist.
    """
    topics = connect(options.bootstrap)[1].topics
    if options.topic not in topics:
        raise CliError(f"there is no topic {options.topic}", "see `pykafka-core topics list`")
    existing = sorted(topics[options.topic].partitions)
    missing = set(options.partitions) - set(existing)
    if missing:
        raise CliError(
            f"{options.topic} has no partition {min(missing)}",
            f"it has 0 to {existing[-1]}",
            exit_code=USAGE,
        )
    return sorted(set(options.partitions)) or existing


def _start(options: ConsumeOptions) -> Start:
    if options.start == "beginning":
        return Start(time=EARLIEST)
    if options.start == "end":
        return Start(time=LATEST)
    if options.start.isdigit():
        return Start(offset=_place(options.start, int64))
    # times below 0 have a special meaning
    return Start(time=max(0, _place(options.start, time_ms)))


def _place(text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except (ValueError, OverflowError):
        raise CliError(
            f"--from {text!r} is not a start in a topic",
            "use beginning, end, an offset, a time such as 2026-01-31T12:00, or @MILLISECONDS",
            exit_code=USAGE,
        ) from None


class Shown(NamedTuple):
    """A record in the form that is printed."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def _shown(topic: str, partition: int, record: Record) -> Shown:
    return Shown(
        topic,
        partition,
        record.offset,
        None if record.timestamp < 0 else record.timestamp,
        "CreateTime" if record.timestamp_type == 0 else "LogAppendTime",
        record.key,
        record.value,
        record.headers,
    )


def headers_at(
    options: ConsumeOptions, partition: int, offset: int
) -> Sequence[tuple[str, bytes | None]]:
    """Read the headers of the record at an offset; empty if the record no longer exists.

    Raises:
        CliError: The partition cannot be read.
    """
    start = Start(offset=offset)
    reader = Reader(
        options.bootstrap, options.topic, [partition], start, follow=False, patience_s=TIMEOUT_S
    )
    with closing(reader.sets()) as sets:
        found = next((record for _, records in sets for record in records), None)
    return found.headers if found is not None and found.offset == offset else ()


def print_record(record: Shown, options: ConsumeOptions) -> None:
    """Write a record to stdout, with the fields that the options select."""
    if options.as_json:
        print_json(_as_json(record))
        return
    out = sys.stdout.buffer
    if options.headers:
        pairs = (f"{name}={_text(value)}" for name, value in record.headers)
        out.write(",".join(pairs).encode() + b"\t")
    if options.keys:
        out.write(_bytes(record.key) + b"\t")
    out.write(_bytes(record.value) + b"\n")


def _as_json(record: Shown) -> dict[str, object]:
    return record._asdict() | {
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
        "headers": [[name, json_bytes(value)] for name, value in record.headers],
    }


def _bytes(value: bytes | None) -> bytes:
    return b"null" if value is None else value


def _text(value: bytes | None) -> str:
    return _bytes(value).decode(errors="replace")
