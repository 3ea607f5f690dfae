"""Directories of Apache Kafka 4.2.1 are served with all of Kafka's records and metadata."""

import base64
import json
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from pykafka_core import Broker
from pykafka_core.types import RESOURCE_TOPIC
from tests.support.patience import PATIENCE_S

Row = tuple[int | None, str | None, str | None]

GOLDEN = Path(__file__).parents[2] / "formats" / "golden"


def expected_partitions(golden: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for file in sorted((GOLDEN / golden / "expected").glob("*-*.json")):
        name, _, index = file.stem.rpartition("-")
        facts = json.loads(file.read_text())
        yield name, int(index), {**facts, **facts.get("after_recovery", {})}


@pytest.fixture(params=["clean", "killed"], scope="module")
def golden(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def broker(golden: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    data = tmp_path_factory.mktemp(golden) / "data"
    shutil.copytree(GOLDEN / golden / "data", data, copy_function=shutil.copyfile)
    for directory in (data, *(path for path in data.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    asked_at_ms = next(expected_partitions(golden))[2]["asked_at_ms"]
    with Broker(data, listeners="127.0.0.1:0", clock=asked_at_ms) as broker:
        yield broker


def test_cluster_and_node_are_those_of_meta_properties(golden: str, broker: Broker) -> None:
    text = (GOLDEN / golden / "data" / "meta.properties").read_text()
    assert f"cluster.id={broker.cluster_id}\n" in text
    assert f"node.id={broker.node_id}\n" in text


def test_topics_have_their_ids_and_partitions(golden: str, broker: Broker) -> None:
    topics = broker._image().topics.by_name
    for name, index, facts in expected_partitions(golden):
        assert topics[name].topic_id == uuid.UUID(facts["topic_id"]).bytes
        assert topics[name].partitions[index].leader == broker.node_id


def test_settings_are_those_of_the_cluster(golden: str, broker: Broker) -> None:
    cluster = json.loads((GOLDEN / golden / "expected" / "cluster.json").read_text())
    for topic in cluster.get("topics", []):
        assert broker._image().configs.of(RESOURCE_TOPIC, topic["name"]) == topic["configs"]


def test_every_offset_equals_that_of_kafka(golden: str, broker: Broker) -> None:
    topics = broker._image().topics.by_name
    for name, index, facts in expected_partitions(golden):
        offsets = broker._core.offsets((topics[name].topic_id, index))
        found = (offsets.log_start_offset, offsets.high_watermark, offsets.last_stable_offset)
        assert found == (
            facts["log_start_offset"],
            facts["high_watermark"],
            facts["last_stable_offset"],
        ), f"{name}-{index}"


def test_every_record_reaches_a_client(golden: str, broker: Broker) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "error",
        }
    )
    expected = {(name, index): facts for name, index, facts in expected_partitions(golden)}
    consumer.assign(
        [
            TopicPartition(name, index, facts["log_start_offset"])
            for (name, index), facts in expected.items()
        ]
    )
    arrived = consumed(consumer, len(expected))
    consumer.close()
    for partition, facts in expected.items():
        assert arrived[partition] == list(stored(facts)), partition


def stored(facts: dict[str, Any]) -> Iterator[Row]:
    for batch in facts["batches"]:
        for record in batch["records"]:
            if "control_type" not in record and record["offset"] >= facts["log_start_offset"]:
                yield record["offset"], record["key"], record["value"]


def consumed(consumer: Consumer, partitions: int) -> dict[tuple[str | None, int | None], list[Row]]:
    """Return the records of every partition up to the end that the broker reports."""
    rows: dict[tuple[str | None, int | None], list[Row]] = defaultdict(list)
    ended = 0
    while ended < partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the end of each partition is told in time"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended += 1
            continue
        row = (message.offset(), text(message.key()), text(message.value()))
        rows[message.topic(), message.partition()].append(row)
    return rows


def text(content: bytes | str | None) -> str | None:
    assert not isinstance(content, str)
    return None if content is None else base64.b64encode(content).decode()
