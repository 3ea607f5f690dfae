"""Partitions of Apache Kafka 4.2.1 in `Log.open`: the same records and producers as in Kafka."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pykafka_core.cli.files.repair import repair
from pykafka_core.log import Log
from pykafka_core.protocol import decode_message
from pykafka_core.protocol.messages import ProducerSnapshot

GOLDEN = Path(__file__).parent.parent / "formats" / "golden"
DAMAGED = "bad-crc-early-0"
"""A partition with valid batches after a bad one: only `repair` cuts those."""
EXPIRATION_MS = 86_400_000

Facts = dict[str, Any]
Producers = dict[int, list[tuple[int, ...]]]


def copied(golden: str, path: Path) -> dict[Path, Facts]:
    """Copy a data directory; return its partitions, and Kafka's facts about each after its
    recovery.
    """
    data = path / "data"
    shutil.copytree(GOLDEN / golden / "data", data, copy_function=shutil.copyfile)
    for directory in (data, *(entry for entry in data.iterdir() if entry.is_dir())):
        directory.chmod(0o755)
    expected = {}
    for file in (GOLDEN / golden / "expected").glob("*-*.json"):
        facts = json.loads(file.read_text())
        expected[data / file.stem] = {**facts, **facts.get("after_recovery", {})}
    return expected


def test_producer_snapshots_of_kafka_are_read(tmp_path: Path) -> None:
    for partition, expected in copied("clean", tmp_path).items():
        assert snapshots(partition) == producers(expected), partition.name


@pytest.mark.parametrize("golden", ["clean", "killed"])
def test_a_partition_holds_the_records_that_kafka_read(golden: str, tmp_path: Path) -> None:
    partitions = copied(golden, tmp_path)
    for partition, expected in partitions.items():
        if partition.name != DAMAGED:
            check_records(partition, expected)


def test_a_damaged_partition_holds_them_once_it_is_repaired(tmp_path: Path) -> None:
    partitions = copied("killed", tmp_path)
    repair(tmp_path / "data", yes=True, keep=False, as_json=False)
    (partition,) = (partition for partition in partitions if partition.name == DAMAGED)
    check_records(partition, partitions[partition])


def test_recovery_knows_the_producers_that_kafkas_knew(tmp_path: Path) -> None:
    partitions = copied("killed", tmp_path)
    repair(tmp_path / "data", yes=True, keep=False, as_json=False)
    for partition, expected in partitions.items():
        with Log.open(partition, clock=expected["asked_at_ms"]):
            pass  # the clean close writes the last snapshot
        oldest_ms = expected["asked_at_ms"] - EXPIRATION_MS
        found, wanted = (
            alive(all_, oldest_ms) for all_ in (snapshots(partition), producers(expected))
        )
        assert {offset: found[offset] for offset in wanted} == wanted, partition.name


def alive(snapshots: Producers, oldest_ms: int) -> Producers:
    """Return the snapshots without expired producers, which Kafka drops some minutes later."""
    return {
        offset: [entry for entry in entries if entry[5] > oldest_ms]
        for offset, entries in snapshots.items()
    }


def check_records(partition: Path, expected: Facts) -> None:
    for read_only in (True, False):
        with Log.open(partition, read_only=read_only, clock=expected["asked_at_ms"]) as log:
            assert read(log) == records(expected), partition.name


def read(log: Log) -> list[object]:
    return [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in log]


def records(expected: Facts) -> list[object]:
    found = [record for batch in expected["batches"] for record in batch["records"]]
    return [
        (
            record["offset"],
            record["timestamp"],
            decoded(record["key"]),
            decoded(record["value"]),
            tuple((name, decoded(value)) for name, value in record.get("headers", ())),
        )
        for record in found
        if "control_type" not in record and record["offset"] >= expected["log_start_offset"]
    ]


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def snapshots(partition: Path) -> Producers:
    """Return the content of each producer snapshot, by its offset."""
    return {int(file.stem): entries(file.read_bytes()) for file in partition.glob("*.snapshot")}


def entries(data: bytes) -> list[tuple[int, ...]]:
    snapshot = decode_message("ProducerSnapshot", int.from_bytes(data[:2], "big"), data[2:])
    assert isinstance(snapshot, ProducerSnapshot)
    return sorted(
        (
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
            entry.timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for entry in snapshot.producer_entries
    )


def producers(expected: Facts) -> Producers:
    return {
        snapshot["offset"]: sorted(
            (
                producer["producer_id"],
                producer["producer_epoch"],
                producer["last_sequence"],
                producer["last_data_offset"],
                producer["last_data_offset"] - producer["first_data_offset"],
                producer["last_timestamp"],
                producer["coordinator_epoch"],
                producer["current_txn_first_offset"],
            )
            for producer in snapshot["producers"]
        )
        for snapshot in expected["producer_snapshots"]
    }
