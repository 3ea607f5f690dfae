"""``consume``: print the records of a topic, partition by partition assigned; `consume_group` has it with a group."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.output import json_bytes, print_json

from .clients import TIMEOUT_S, connect, consumer, interruptible, kafka_errors

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

INT64_MAX = 2**63 - 1
_BATCH = 1000
_POLL_S = 0.5
_NO_TIMESTAMP, _CREATE_TIME = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumeOptions:
    """What ``consume`` was asked; no partitions mean all of them, no group is none."""

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
    """Print records from the start that was asked to the end, or until interrupted.

    Raises:
        CliError: The topic, a partition or the start does not exist.
    """
    partitions = partitions_of(options)
    client = consumer(options.bootstrap, follow=options.follow)
    try:
        with kafka_errors(f"cannot consume {options.topic}"):
            client.assign(_starts(client, options, partitions))
            for message in _messages(client, len(partitions), options):
                print_record(message, options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    finally:
        client.close()


def partitions_of(options: ConsumeOptions) -> list[int]:
    """Return those that were asked for, or all of the topic.

    Raises:
        CliError: Nobody answers, or the topic or a partition does not exist.
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


def _starts(
    client: "Consumer", options: ConsumeOptions, partitions: list[int]
) -> "list[TopicPartition]":
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    names = {"beginning": OFFSET_BEGINNING, "end": OFFSET_END}
    if options.start in names:
        return [TopicPartition(options.topic, p, names[options.start]) for p in partitions]
    if options.start.isdigit():
        offset = _place(options.start, _int64)
        return [TopicPartition(options.topic, p, offset) for p in partitions]
    since_ms = _place(options.start, time_ms)
    asked = [TopicPartition(options.topic, p, since_ms) for p in partitions]
    found = interruptible(lambda: client.offsets_for_times(asked, timeout=TIMEOUT_S))
    # Nothing that young: -1, which is the end.
    return [TopicPartition(f.topic, f.partition, f.offset) for f in found]


def _place(text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except (ValueError, OverflowError):
        raise CliError(
            f"--from {text!r} is no place in a topic",
            "use beginning, end, an offset, a time as 2026-01-31T12:00, or @MILLISECONDS",
            exit_code=USAGE,
        ) from None


def time_ms(text: str) -> int:
    """Return milliseconds since 1970 of an ISO time, local where it names no zone, or of ``@MILLISECONDS``."""
    if text.startswith("@"):
        return _int64(text[1:])
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def _int64(text: str) -> int:
    number = int(text)
    if abs(number) > INT64_MAX:
        raise OverflowError
    return number


def _messages(
    client: "Consumer", partitions_count: int, options: ConsumeOptions
) -> "Iterator[Message]":
    """Records as they come; ends at ``--max``, and at every partition's end unless following."""
    from confluent_kafka import KafkaError

    left = options.count
    ended: set[int | None] = set()
    while options.follow or len(ended) < partitions_count:
        # `consume` waits until it has a whole batch: only `poll` returns as soon as there is something.
        first = client.poll(0)
        if first is None:  # who reads a pipe sees what there is before we wait for more
            sys.stdout.flush()
            first = client.poll(_POLL_S)
        for message in () if first is None else (first, *client.consume(_BATCH, 0)):
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise CliError(f"cannot consume {options.topic}: {error.str()}", _advice(error))
                ended.add(message.partition())
                continue
            yield message
            left = None if left is None else left - 1
            if left == 0:
                return


def _advice(error: "KafkaError") -> str:
    from confluent_kafka import KafkaError

    out = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
    return "`pykafka-core topics describe` shows which offsets exist" if error.code() in out else ""


def print_record(message: "Message", options: ConsumeOptions) -> None:
    """Write a record to stdout, with what the options ask for."""
    if options.as_json:
        print_json(_as_json(message))
        return
    out = sys.stdout.buffer
    if options.headers:
        pairs = (f"{name}={_text(value)}" for name, value in message.headers() or ())
        out.write(",".join(pairs).encode() + b"\t")
    if options.keys:
        out.write(_bytes(message.key()) + b"\t")
    out.write(_bytes(message.value()) + b"\n")


def _as_json(message: "Message") -> dict[str, object]:
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": None if kind == _NO_TIMESTAMP else timestamp,
        "timestamp_type": "CreateTime" if kind == _CREATE_TIME else "LogAppendTime",
        "key": json_bytes(message.key()),
        "value": json_bytes(message.value()),
        "headers": [[name, json_bytes(value)] for name, value in message.headers() or ()],
    }


def _bytes(value: str | bytes | None) -> bytes:
    if value is None:
        return b"null"
    return value.encode() if isinstance(value, str) else value


def _text(value: str | bytes | None) -> str:
    return _bytes(value).decode(errors="replace")
