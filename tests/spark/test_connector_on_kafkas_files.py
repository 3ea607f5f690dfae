"""Transactions, compaction and markers leave gaps between offsets; Spark must skip them.

Our broker serves a directory in which Apache Kafka ran the transactions. The stored facts about
Kafka's files are the expected results.
"""

import base64
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pykafka_core import Broker
from tests.spark.sides import Side, rows

GOLDEN = Path(__file__).parent.parent / "formats" / "golden" / "clean"
Record = tuple[object, ...]  # topic, partition, offset, key, value
PARTITIONS = {
    (file.stem.rpartition("-")[0], int(file.stem.rpartition("-")[2])): json.loads(file.read_text())
    for file in sorted((GOLDEN / "expected").glob("[!_]*-*.json"))
}


@pytest.fixture(scope="module")
def side(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    folder = tmp_path_factory.mktemp("kafkas-files")
    shutil.copytree(GOLDEN / "data", folder / "data", copy_function=shutil.copyfile)
    for directory in (folder / "data", *(p for p in folder.rglob("*") if p.is_dir())):
        directory.chmod(0o755)
    then = next(iter(PARTITIONS.values()))["asked_at_ms"]
    with Broker(folder / "data", listeners="127.0.0.1:0", clock=then) as broker:
        yield Side("golden", broker.bootstrap_servers, spark, folder)


def stored(facts: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield batch and record of all records that readers may see."""
    for batch in facts["batches"]:
        for record in batch["records"]:
            if record["offset"] >= facts["log_start_offset"]:
                yield batch, record


def uncommitted(place: tuple[str, int], facts: dict[str, Any]) -> list[Record]:
    return [row(place, record) for batch, record in stored(facts) if not batch["control"]]


def committed(place: tuple[str, int], facts: dict[str, Any]) -> list[Record]:
    """Return committed and non-transactional records below the last stable offset."""
    found: list[Record] = []
    pending: dict[int, list[Record]] = defaultdict(list)
    for batch, record in stored(facts):
        if record["offset"] >= facts["last_stable_offset"]:
            continue
        if batch["control"]:
            ended = pending.pop(batch["producer_id"], [])
            found += ended if record["control_type"] == "COMMIT" else []
        else:
            home = pending[batch["producer_id"]] if batch["transactional"] else found
            home.append(row(place, record))
    return sorted(found, key=lambda record: int(str(record[2])))


def row(place: tuple[str, int], record: dict[str, Any]) -> Record:
    content = (record[name] for name in ("key", "value"))
    plain = (None if text is None else base64.b64decode(text) for text in content)
    return (*place, record["offset"], *plain)


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_spark_reads_records_stored_by_kafka(side: Side, level: str) -> None:
    expected_of = {"read_uncommitted": uncommitted, "read_committed": committed}[level]
    frame = side.read(subscribePattern="[^_].*", kafka__isolation__level=level)
    got: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in rows(frame.select("topic", "partition", "offset", "key", "value")):
        got[str(record[0]), int(str(record[1]))].append(record)
    for place, facts in PARTITIONS.items():
        assert got[place] == expected_of(place, facts), place


def test_the_files_hold_aborted_and_open_transactions() -> None:
    """Otherwise the test above would prove nothing."""
    places = {
        place: (len(uncommitted(place, facts)), len(committed(place, facts)))
        for place, facts in PARTITIONS.items()
    }
    assert {place[0] for place, (every, some) in places.items() if some < every} >= {
        "transactions",
        "open-transaction",
    }
