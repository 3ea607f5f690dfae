"""Expected contents of partitions: the last record of each key, and the log start offset."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, DeletedRecords, NewTopic

from pykafka_core.log import Log
from tests.faults.cluster.clusters import NODES, QUIET
from tests.faults.history import Anomaly
from tests.support.patience import PATIENCE_S, eventually

TOPIC_CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "4096",
    "file.delete.delay.ms": "0",
    "min.insync.replicas": "1",
}
KEYS = 12
OVERWRITES = 60
"""Records of one key in a row: compaction leaves one of them."""


LEADER_MOVES = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}


class Record(NamedTuple):
    """A record and its place; the value of a tombstone is `None`."""

    offset: int
    value: bytes | None


@dataclass
class History:
    """One partition.

    Attributes:
        last: The last acknowledged record of each key.
        log_start: The log start offset.
        end: The offset after the last acknowledged record.
    """

    topic: str
    index: int
    choice: Random
    replicas: list[int]
    last: dict[bytes, Record] = field(default_factory=dict)
    log_start: int = 0
    end: int = 0

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"{self.topic}-{self.index}"

    def expected(self) -> dict[bytes, Record]:
        """Return the expected records of a reader, by key, from the log start offset on."""
        return {key: one for key, one in self.last.items() if one.offset >= self.log_start}

    def some_replicas(self) -> list[int]:
        """Return two or three nodes in any order."""
        return self.choice.sample(NODES, self.choice.choice((2, 3)))

    def next_keys(self) -> Iterator[tuple[bytes, bool]]:
        """Yield the keys of the next records, and whether each record has a value."""
        match self.choice.randrange(3):
            case 0:
                key = self._some_key()
                yield from ((key, True) for _ in range(OVERWRITES))
            case 1:
                yield from ((b"%d" % number, True) for number in range(KEYS))
            case _:
                yield from ((self._some_key(), False) for _ in range(3))

    def _some_key(self) -> bytes:
        return b"%d" % self.choice.randrange(KEYS)


def create(bootstrap: str, topic: str, count: int, choice: Random) -> list[History]:
    """Create a topic whose partitions are on random nodes."""
    histories = [
        History(topic, index, Random(choice.getrandbits(64)), choice.sample(NODES, 2))
        for index in range(count)
    ]
    replicas = [one.replicas for one in histories]
    new = NewTopic(topic, count, replica_assignment=replicas, config=TOPIC_CONFIG)
    client = admin(bootstrap)
    client.create_topics([new])[topic].result(PATIENCE_S)
    return histories


def delete(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    client.delete_topics([topic])[topic].result(PATIENCE_S)


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def write(bootstrap: str, histories: Sequence[History]) -> list[Anomaly]:
    """Send records to each partition in small batches; return those that are not delivered."""
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "batch.num.messages": 3, **QUIET}
    producer = Producer({**settings, "enable.idempotence": True})
    refused: list[Anomaly] = []
    left = {one.index: one.next_keys() for one in histories}
    for one in histories:
        for key, has_value in left[one.index]:
            value = b"%d " % one.choice.getrandbits(64) * 8 if has_value else None
            producer.produce(
                one.topic,
                value,
                key,
                one.index,
                on_delivery=lambda error, message, one=one: _note(refused, one, error, message),
            )
        producer.poll(0)
    if waiting := producer.flush(PATIENCE_S):
        refused.append(Anomaly("not written", f"{waiting} records of {histories[0].topic}"))
    return refused


def _note(refused: list[Anomaly], one: History, error: object, message: Message) -> None:
    if error is not None:
        refused.append(Anomaly("not written", f"{one.name}: {error}"))
        return
    key, offset = message.key(), message.offset()
    assert isinstance(key, bytes)
    assert offset is not None
    one.last[key] = Record(offset, message.value())
    one.end = max(one.end, offset + 1)


def delete_records(bootstrap: str, histories: Iterable[History]) -> None:
    """Move the log start offset of some partitions, also to an offset inside a batch."""
    wanted = [
        TopicPartition(one.topic, one.index, one.choice.randint(one.log_start, one.end))
        for one in histories
        if one.choice.randrange(4) == 0
    ]
    by_index = {one.index: one for one in histories}
    client = admin(bootstrap)

    def are_deleted() -> bool:
        for place, response in client.delete_records(wanted).items() if wanted else ():
            if (low_watermark := _low_watermark(response)) is not None:
                by_index[place.partition].log_start = low_watermark
                wanted.remove(place)
        return not wanted

    eventually(are_deleted, "records are deleted")


def _low_watermark(response: Future[DeletedRecords]) -> int | None:
    """Return the new log start offset; None if leadership moves."""
    try:
        return int(response.result(PATIENCE_S).low_watermark)
    except KafkaException as error:
        if error.args[0].code() not in LEADER_MOVES:
            raise
        return None


def stored_log_start(data: Path, name: str) -> int:
    """Return a replica's log start offset after a kill, by its checkpoint and first segment."""
    checkpoint = data / "log-start-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    rows = (line.rsplit(" ", 2) for line in lines)
    noted = [int(offset) for topic, index, offset in rows if f"{topic}-{index}" == name]
    segments = [int(file.stem) for file in (data / name).glob("*.log")]
    return max(*noted, min(segments, default=0), 0)


def misread(bootstrap: str, histories: Sequence[History]) -> list[Anomaly]:
    """Return partitions from which a consumer does not get the expected records."""
    reading = {
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "group.id": "readers",
    }
    consumer = Consumer({"bootstrap.servers": bootstrap, **reading, **QUIET})
    try:
        found = [one for history in histories for one in _wrong_start(consumer, history)]
        read = _read(consumer, histories)
    finally:
        consumer.close()
    return found + [
        wrong
        for history in histories
        for wrong in _difference("read", history, read.get(history.index, {}))
    ]


def _wrong_start(consumer: Consumer, history: History) -> Iterator[Anomaly]:
    bounds: list[tuple[int, int]] = []
    eventually(lambda: _has_leader(consumer, history, bounds), f"{history.name} has a leader")
    expected = (history.log_start, history.end)
    if bounds != [expected]:
        yield Anomaly("wrong bounds", f"{history.name}: {bounds}, expected {expected}")


def _has_leader(consumer: Consumer, history: History, bounds: list[tuple[int, int]]) -> bool:
    """Add the log start offset and high watermark to `bounds`, unless leadership moves."""
    partition = TopicPartition(history.topic, history.index)
    try:
        bounds.append(consumer.get_watermark_offsets(partition, PATIENCE_S))
    except KafkaException as error:
        if error.args[0].code() not in LEADER_MOVES:
            raise
    return bool(bounds)


def _read(consumer: Consumer, histories: Sequence[History]) -> dict[int, dict[bytes, Record]]:
    """Return the last record of each key by partition, read from the log start offset."""
    consumer.assign([TopicPartition(one.topic, one.index, one.log_start) for one in histories])
    unread = {one.index for one in histories}
    last: dict[int, dict[bytes, Record]] = {}
    while unread and (message := consumer.poll(PATIENCE_S)) is not None:
        index, error = message.partition(), message.error()
        assert index is not None
        if error is not None:
            # The end of the partition; after any other error its records are missing.
            unread.discard(index)
            continue
        key, offset = message.key(), message.offset()
        assert isinstance(key, bytes)
        assert offset is not None
        last.setdefault(index, {})[key] = Record(offset, message.value())
    return last


def misstored(data: Mapping[int, Path], histories: Sequence[History]) -> list[Anomaly]:
    """Return replicas of stopped nodes that lack an expected record."""
    return [
        wrong
        for history in histories
        for node in history.replicas
        for wrong in _difference(
            f"node {node}", history, _stored(data[node] / history.name, history.log_start)
        )
    ]


def _stored(folder: Path, log_start: int) -> dict[bytes, Record]:
    with Log.open(folder, read_only=True) as log:
        return {
            record.key: Record(record.offset, record.value)
            for record in log
            if record.offset >= log_start and record.key is not None
        }


def _difference(reader: str, history: History, found: Mapping[bytes, Record]) -> Iterator[Anomaly]:
    expected = history.expected()
    if dict(found) != expected:
        lacking = sorted(key for key in expected if found.get(key) != expected[key])
        surplus = sorted(found.keys() - expected.keys())
        yield Anomaly("not equal", f"{history.name}, {reader}: lacks {lacking}, has {surplus}")


def compacted_copies(data: Mapping[int, Path], histories: Sequence[History]) -> int:
    """Return the number of replicas from which compaction removed records."""
    return sum(
        _has_gaps(data[node] / history.name) for history in histories for node in history.replicas
    )


def _has_gaps(folder: Path) -> bool:
    with Log.open(folder, read_only=True) as log:
        offsets = [record.offset for record in log]
    return bool(offsets) and len(offsets) < offsets[-1] + 1 - offsets[0]
