"""Foreign clients with one interface: `write` a list of records in a codec, `read` a topic."""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.support.java import java
from tests.support.patience import PATIENCE_S, POLL_S

Headers = tuple[tuple[str, bytes | None], ...]
PARTITIONS = 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One record that every client can write and read; `timestamp` in ms, CreateTime."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Client(Protocol):
    """A client library with its defaults, except the codec and acks=all."""

    name: str
    null_headers: bool
    """Whether it can write a header without a value."""

    def write(self, bootstrap: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        """Return when every row is acknowledged."""

    def read(self, bootstrap: str, topic: str, count: int) -> list[Row]:
        """Return the first `count` rows of all partitions, in order within each."""


class Confluent:
    """librdkafka, through confluent-kafka."""

    name = "confluent-kafka"
    null_headers = True

    def write(self, bootstrap: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        from confluent_kafka import Producer

        failed: list[str] = []
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "acks": "all"}
        )
        for row in rows:
            producer.produce(
                topic,
                row.value,
                row.key,
                row.partition,
                timestamp=row.timestamp,
                headers=list(row.headers),
                on_delivery=lambda error, _: failed.append(str(error)) if error else None,
            )
        assert producer.flush(PATIENCE_S) == 0
        assert not failed, failed[:3]

    def read(self, bootstrap: str, topic: str, count: int) -> list[Row]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        rows: list[Row] = []
        while len(rows) < count:
            for got in consumer.consume(count - len(rows), timeout=POLL_S):
                assert got.error() is None, got.error()
                headers = tuple((k, v) for k, v in got.headers() or ())
                rows.append(
                    Row(
                        partition=got.partition(),
                        timestamp=got.timestamp()[1],
                        key=got.key(),
                        value=got.value(),
                        headers=headers,
                    )
                )
        consumer.close()
        return rows


class KafkaPython:
    """kafka-python, which cannot write headers without a value."""

    name = "kafka-python"
    null_headers = False

    def write(self, bootstrap: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
        )
        sent = [
            producer.send(
                topic,
                value=row.value,
                key=row.key,
                partition=row.partition,
                timestamp_ms=row.timestamp,
                headers=list(row.headers),
            )
            for row in rows
        ]
        for one in sent:
            one.get(timeout=PATIENCE_S)
        producer.close()

    def read(self, bootstrap: str, topic: str, count: int) -> list[Row]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        rows = [
            Row(
                partition=got.partition,
                timestamp=got.timestamp,
                key=got.key,
                value=got.value,
                headers=tuple(got.headers),
            )
            for _, got in zip(range(count), consumer, strict=False)  # first the range, which ends
        ]
        consumer.close()
        return rows


class Aiokafka:
    """aiokafka, with a new event loop for each call."""

    name = "aiokafka"
    null_headers = True

    def write(self, bootstrap: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        asyncio.run(self._write(bootstrap, topic, codec, rows))

    async def _write(self, bootstrap: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        from aiokafka import AIOKafkaProducer

        compression = None if codec == "none" else codec
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=compression, acks="all"
        ) as producer:
            sent = [
                await producer.send(
                    topic,
                    value=row.value,
                    key=row.key,
                    partition=row.partition,
                    timestamp_ms=row.timestamp,
                    headers=list(row.headers),
                )
                for row in rows
            ]
            await asyncio.gather(*sent)

    def read(self, bootstrap: str, topic: str, count: int) -> list[Row]:
        return asyncio.run(self._read(bootstrap, topic, count))

    async def _read(self, bootstrap: str, topic: str, count: int) -> list[Row]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            return [self._row(await consumer.getone()) for _ in range(count)]
        finally:
            await consumer.stop()

    @staticmethod
    def _row(got: object) -> Row:
        fields = {name: getattr(got, name) for name in ("partition", "timestamp", "key", "value")}
        return Row(headers=tuple(getattr(got, "headers")), **fields)  # noqa: B009


def _base64(value: bytes | None) -> str:
    return "-" if value is None else base64.b64encode(value).decode()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)


class Java:
    """Kafka's own Java client, idempotent by default."""

    name = "java"
    null_headers = True

    def write(self, bootstrap: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        lines = [
            "\t".join(
                [
                    str(row.partition),
                    str(row.timestamp),
                    _base64(row.key),
                    _base64(row.value),
                    *(f"{name}={_base64(value)}" for name, value in row.headers),
                ]
            )
            for row in rows
        ]
        printed = java(
            "Driver",
            "produce",
            bootstrap,
            topic,
            f"compression.type={codec}",
            stdin="\n".join(lines),
        )
        assert len(printed.splitlines()) == len(rows)

    def read(self, bootstrap: str, topic: str, count: int) -> list[Row]:
        rows = []
        for line in java("Driver", "consume", bootstrap, topic, str(count)).splitlines():
            _, partition, timestamp, key, value, *headers = line.split("\t")
            pairs = [header.split("=", 1) for header in headers]
            rows.append(
                Row(
                    partition=int(partition),
                    timestamp=int(timestamp),
                    key=_bytes(key),
                    value=_bytes(value),
                    headers=tuple((name, _bytes(text)) for name, text in pairs),
                )
            )
        return rows


CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), Aiokafka(), Java())
