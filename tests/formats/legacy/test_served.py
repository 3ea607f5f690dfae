"""Partitions of formats 0 and 1 in a broker: consumers, raw fetches, times, compaction."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pykafka_core import Broker
from pykafka_core.cli.consume.reader import Reader, Start
from pykafka_core.protocol import messages as m
from tests.formats.legacy.batches import Row
from tests.formats.legacy.corpus import Case, cases, first_at_least, untyped
from tests.support.patience import PATIENCE_S, eventually
from tests.support.wire import Connection

CASES = {case.name: case for case in cases()}
FETCH, LIST_OFFSETS = 1, 2
TIMESTAMP_TYPES = {0: "NoTimestampType", 1: "CreateTime", 2: "LogAppendTime"}
"""By confluent-kafka's number."""
ERRORS = {"NONE": 0, "OFFSET_OUT_OF_RANGE": 1}
SPECIAL = {"earliest": -2, "latest": -1, "max_timestamp": -3}


def data_directory(folder: Path, *, clean: bool, config: dict[str, str] | None = None) -> Path:
    """A broker's directory with the corpus as its topics, stopped cleanly or not."""
    data = folder / "data"
    with Broker(data, listeners="127.0.0.1:0") as broker:
        for name in CASES:
            broker.create_topic(name, 1, config=config)
    for case in CASES.values():
        shutil.rmtree(data / case.directory.name, ignore_errors=True)
        case.copy_to(data)
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()
    return data


@pytest.fixture(params=["clean", "unclean"], scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp(request.param)
    data = data_directory(folder, clean=request.param == "clean")
    # Times of the corpus are years ago: retention would take them.
    with Broker(data, listeners="127.0.0.1:0", config={"log.retention.ms": "-1"}) as broker:
        yield broker
    for case in CASES.values():
        for segment in case.directory.glob("*.log"):
            kept = (data / case.directory.name / segment.name).read_bytes()
            assert kept.startswith(segment.read_bytes())


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def consumed(
    broker: Broker, topic: str, end: int, isolation: str = "read_uncommitted"
) -> list[Row]:
    """The records that a consumer reads from the beginning up to an offset."""
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "none"}
    reads = {"enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**config, **reads, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Row] = []
    try:
        while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if message.error() is not None:
                break
            kind, timestamp = message.timestamp()
            at = timestamp if kind else -1
            offset = message.offset()
            assert offset is not None
            found.append(Row(offset, at, TIMESTAMP_TYPES[kind], message.key(), message.value()))
    finally:
        consumer.close()
    return found


def test_a_consumer_reads_every_record(broker: Broker, case: Case) -> None:
    end = case.list_offsets["latest"][0]
    assert consumed(broker, case.name, end) == case.records


def test_the_command_line_reads_every_committed_record(broker: Broker, case: Case) -> None:
    reader = Reader(
        broker.bootstrap_servers, case.name, [0], Start(), follow=False, patience_s=PATIENCE_S
    )
    found = [(row.offset, row.key, row.value) for part in reader.sets() for row in part.records]
    end = case.list_offsets["latest"][0]
    committed = consumed(broker, case.name, end, isolation="read_committed")
    assert found == [(row.offset, row.key, row.value) for row in committed]


def test_a_fetch_returns_the_bytes_of_the_file(broker: Broker, case: Case) -> None:
    topic_id = broker._image().topics.by_name[case.name].topic_id
    asked = [fact for fact in case.facts["fetches"] if fact["version"] >= 12]
    with Connection(broker.bootstrap_servers) as connection:
        for fact in asked:
            answer = connection.ask(FETCH, fact["version"], _fetch(case.name, topic_id, fact))
            partition = answer.responses[0].partitions[0]
            assert partition.error_code == ERRORS[fact["error"]]
            assert bytes(partition.records or b"") == _whole_batches(case, fact)


def _whole_batches(case: Case, fact: dict[str, Any]) -> bytes:
    """The bytes that Kafka returned, without a last batch that it cut off at the maximum size."""
    if not fact["size"]:
        return b""
    start, end = fact["position"], fact["position"] + fact["size"]
    data = (case.directory / f"{fact['segment']:020}.log").read_bytes()
    assert hashlib.sha256(data[start:end]).hexdigest() == fact["sha256"]
    (segment,) = (s for s in case.facts["segments"] if s["base_offset"] == fact["segment"])
    ends = [batch["position"] + batch["size"] for batch in segment["batches"]]
    return data[start : max(at for at in ends if at <= end)]


def _fetch(topic: str, topic_id: bytes, fact: dict[str, Any]) -> m.FetchRequest:
    partition = m.FetchRequest.FetchPartition(
        partition=0, fetch_offset=fact["offset"], partition_max_bytes=fact["max_bytes"]
    )
    wanted = m.FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])
    return m.FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted], session_epoch=-1)


def test_offsets_are_listed_as_by_kafka(broker: Broker, case: Case) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        for asked, offset, timestamp in case.facts["list_offsets"]["old"]:
            partition = m.ListOffsetsRequest.ListOffsetsPartition(
                partition_index=0, timestamp=SPECIAL.get(asked, asked)
            )
            topic = m.ListOffsetsRequest.ListOffsetsTopic(name=case.name, partitions=[partition])
            request = m.ListOffsetsRequest(replica_id=-1, topics=[topic])
            found = connection.ask(LIST_OFFSETS, 9, request).topics[0].partitions[0]
            if offset < 0:
                newest = max(row.timestamp for row in case.records)
                wanted = asked if isinstance(asked, int) else max(newest, 0)
                offset, timestamp = first_at_least(case.records, wanted)
            assert (found.error_code, found.offset, found.timestamp) == (0, offset, timestamp), (
                asked
            )


@pytest.mark.interval
def test_a_compaction_keeps_the_records_that_kafka_keeps(tmp_path: Path) -> None:
    """Kafka cannot compact a segment whose last batch is old and loses all of its records."""
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    data = data_directory(tmp_path, clean=True, config=compacted)
    with Broker(data, listeners="127.0.0.1:0", config={"log.cleaner.backoff.ms": "50"}) as broker:
        for case in CASES.values():
            end = case.list_offsets["latest"][0]
            expected = case.compacted if case.compacted is not None else _last_of_each_key(case)

            def is_compacted(case: Case = case, end: int = end, left: list[Row] = expected) -> bool:
                return untyped(consumed(broker, case.name, end)) == untyped(left)

            eventually(is_compacted, f"{case.name} is compacted")


def _last_of_each_key(case: Case) -> list[Row]:
    """The last record of each key below the active segment, and the active segment."""
    active = case.facts["segments"][-1]["base_offset"]
    last = {
        row.key: row.offset for row in case.records if row.key is not None and row.offset < active
    }
    kept = set(last.values())
    return [row for row in case.records if row.offset >= active or row.offset in kept]
