"""A broker for Spark's connector: the operations of the comparison cases, equal for all brokers."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import Column, DataFrame, SparkSession

from tests.support.patience import PATIENCE_S, seconds

Options = Mapping[str, object]
Headers = Sequence[tuple[str, bytes | None]]
# Varying parts: ids of queries, groups, expressions and Java objects, nodes, folders, task numbers.
_IDENTITIES = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-+\d+)?|@[0-9a-f]{5,8}|#\d+L?|\bo\d+\b"
    r"|127\.0\.0\.1:\d+(?: \(id: \d+)?|\((?:\S+ executor|TID) [^)]*\)"
    r"|[Tt]ask \d+(?:\.\d+)? in stage \d+\.\d+|checkpointLocation=[^\],]*"
)
_STACK = re.compile(r"\s+at .*|\s+\.\.\. \d+ more|Driver stacktrace:|  File .*|    .*")
# Fail at once, not after ten seconds: limits of the driver's retries for missing offsets.
_READ = {"fetchOffset.numRetries": 1, "fetchOffset.retryIntervalMs": 10}


@dataclass(frozen=True, kw_only=True)
class Event:
    """One record to write by a client other than Spark; `timestamp` in ms."""

    partition: int
    value: bytes | None
    key: bytes | None = None
    timestamp: int = 1_700_000_000_000
    headers: Headers = ()


class Side:
    """One broker; all brokers have topics of the same names."""

    def __init__(self, name: str, bootstrap: str, spark: SparkSession, folder: Path) -> None:
        self.name, self.bootstrap, self.spark, self.folder = name, bootstrap, spark, folder
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._numbers = count()

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        """Create the topic, which keeps old records; `_` in a setting's name means `.`."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        settings.setdefault("retention.ms", "-1")
        done = self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])
        done[topic].result(PATIENCE_S)
        return topic

    def delete(self, topic: str) -> None:
        """Delete the topic and wait until no client sees it."""
        self.admin.delete_topics([topic])[topic].result(PATIENCE_S)
        while topic in self.admin.list_topics(timeout=PATIENCE_S).topics:
            pass

    def widen(self, topic: str, partitions: int) -> None:
        """Add partitions, up to this number."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(PATIENCE_S)
        while len(self.admin.list_topics(timeout=PATIENCE_S).topics[topic].partitions) < partitions:
            pass

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Move the log start offsets, as retention does."""
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        for done in self.admin.delete_records(wanted).values():
            done.result(PATIENCE_S)

    def expire(self, topic: str, before_ms: int, firsts: Mapping[int, int]) -> None:
        """Let retention delete segments of records before that time; return at these log starts."""
        kept_ms = time.time_ns() // 1_000_000 - before_ms
        entry = ConfigEntry(
            "retention.ms", str(kept_ms), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while (found := self._firsts(topic, firsts)) != firsts:
            assert time.monotonic() < deadline, f"retention is at {found}"

    def _firsts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): OffsetSpec.earliest() for number in partitions}
        asked = self.admin.list_offsets(wanted)
        return {place.partition: found.result(PATIENCE_S).offset for place, found in asked.items()}

    def produce(self, topic: str, events: Sequence[Event], codec: str = "none") -> None:
        """Return when all are acknowledged, in order within each partition."""
        failed: list[object] = []
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,  # a retry keeps the order
            }
        )

        def on_delivery(error: object, _: object) -> None:
            if error is not None:
                failed.append(error)

        for event in events:
            producer.produce(
                topic,
                value=event.value,
                key=event.key,
                partition=event.partition,
                timestamp=event.timestamp,
                headers=list(event.headers),
                on_delivery=on_delivery,
            )
        assert producer.flush(PATIENCE_S) == 0
        assert not failed, failed

    def read(self, **options: object) -> DataFrame:
        """Return a batch read; `__` in an option's name means `.`."""
        return self.spark.read.format("kafka").options(**self._options(options)).load()

    def write(self, rows: DataFrame, **options: object) -> None:
        """Write a batch."""
        given = _plain(options) | {"kafka.bootstrap.servers": self.bootstrap}
        rows.write.format("kafka").options(**given).save()

    def checkpoint(self) -> str:
        """Return a new folder for a stream's progress."""
        return str(self.folder / f"checkpoint-{next(self._numbers)}")

    def stream(self, **options: object) -> DataFrame:
        """Return a streaming read."""
        return self.spark.readStream.format("kafka").options(**self._options(options)).load()

    def batches(
        self, checkpoint: str, *columns: str | Column, **options: object
    ) -> list[list[tuple[object, ...]]]:
        """Run a stream over all available records (AvailableNow).

        Returns:
            The rows of each nonempty micro-batch, sorted; all columns if none are given.
        """
        seen: list[list[tuple[object, ...]]] = []

        def keep(frame: DataFrame, _: int) -> None:
            seen.append(rows(frame))

        query = (
            self.stream(**options)
            .select(*(columns or ("*",)))
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(round(seconds(240))), "the stream did not end"
        finally:
            query.stop()
        return [batch for batch in seen if batch]

    def _options(self, options: Options) -> dict[str, str]:
        return (
            {name: str(value) for name, value in _READ.items()}
            | _plain(options)
            | {"kafka.bootstrap.servers": self.bootstrap}
        )


def _plain(options: Options) -> dict[str, str]:
    return {
        name.replace("__", "."): json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in options.items()
    }


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """Return all rows with bytes instead of bytearrays, sorted by place."""
    names = frame.columns
    place = [names.index(name) for name in ("topic", "partition", "offset") if name in names]
    plain: Iterator[tuple[Any, ...]] = (_value(tuple(row)) for row in frame.collect())
    return sorted(plain, key=lambda row: tuple(row[number] for number in place) or repr(row))


def _value(value: object) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, tuple | list):
        return tuple(_value(part) for part in value)
    return value


def failure(action: Callable[[], object]) -> list[str]:
    """Return an action's error and its causes, each with class and text, without varying parts.

    Raises:
        AssertionError: The action succeeded.
    """
    try:
        got = action()
    except Py4JJavaError as error:
        return _causes(error.java_exception)
    except CapturedException as error:
        return _causes(error._origin)
    raise AssertionError(f"it succeeded: {got!r}")


def _causes(thrown: Any) -> list[str]:
    said = []
    while thrown is not None:
        lines = str(thrown.getMessage()).splitlines()
        text = "\n".join(line for line in lines if not _STACK.fullmatch(line))
        said.append(_IDENTITIES.sub("…", f"{thrown.getClass().getName()}: {text}"))
        thrown = thrown.getCause()
    return said
