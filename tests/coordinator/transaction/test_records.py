"""Stored transactions: records are written byte for byte as by Kafka 4.2, and all versions of
Kafka's records are read.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafka_core._core import ProtocolError
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.coordinator.transaction.records import (
    read_transaction,
    read_transactional_id,
    transaction_record,
    transaction_tombstone,
)
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import TV2, Transaction
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.protocol.coordinator_records import encode_record_value
from pykafka_core.protocol.messages import TransactionLogValue
from tests.coordinator.transaction.world import (
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    SETTINGS,
    T0,
    T1,
    U0,
    Operation,
    World,
    abort,
    add,
    commit,
    init,
    transaction,
    written,
)

GOLDEN = Path(__file__).parents[2] / "formats/golden"


def expected(life: str, name: str) -> Any:
    return json.loads((GOLDEN / life / f"expected/{name}.json").read_text())


def stored_by_kafka() -> Iterator[tuple[str, int, KeyValue]]:
    """Yield all records of `__transaction_state` that Kafka wrote, with life and partition."""
    for path in sorted(GOLDEN.glob("*/expected/__transaction_state-*.json")):
        life, partition = path.parts[-3], int(path.stem.rpartition("-")[2])
        for batch in json.loads(path.read_text())["batches"]:
            for record in batch["records"]:
                value = None if record["value"] is None else b64decode(record["value"])
                yield life, partition, (b64decode(record["key"]), value)


@pytest.fixture(scope="module")
def kafkas() -> list[tuple[str, int, KeyValue]]:
    return list(stored_by_kafka())


def test_records_of_kafka_are_written_again_unchanged(
    kafkas: list[tuple[str, int, KeyValue]],
) -> None:
    values = [(key, value) for _, _, (key, value) in kafkas if value is not None]
    assert len(values) > 50
    for key, value in values:
        again = transaction_record(read_transaction(read_transactional_id(key), value))
        # Kafka's order of topics is that of a hash table.
        assert sorted(again[1] or b"") == sorted(value)
        assert (again[0], len(again[1] or b"")) == (key, len(value))
        is_ordered = len(read_transaction("x", value).partitions) < 2
        assert again[1] == value or not is_ordered


def test_same_requests_at_the_same_times_are_stored_as_in_kafka(
    kafkas: list[tuple[str, int, KeyValue]],
) -> None:
    """The requests are derived from Kafka's records; the resulting records are the shard's."""
    worlds: dict[str, World] = {}
    for life, _, (key, value) in kafkas:
        assert value is not None
        theirs = read_transaction(read_transactional_id(key), value)
        world = worlds.setdefault(f"{life} {theirs.transactional_id}", World())
        world.shard.new_producer_id = lambda of=theirs: of.producer_id  # type: ignore[misc]
        world.now_ms = theirs.last_update_ms
        world.ask(_request_of(theirs, world))
        assert world.one(theirs.transactional_id) == theirs._replace(
            last_producer_epoch=world.one(theirs.transactional_id).last_producer_epoch
        )
        assert len(world.records[-1][1] or b"") == len(value)
    assert len(worlds) > 5


def _request_of(after: Transaction, world: World) -> Operation:
    """Return the client's request that led to this record."""
    name, producer_id = after.transactional_id, after.producer_id
    before = world.shard.by_id.get(name)
    epoch = after.producer_epoch if before is None else before.producer_epoch
    match after.state:
        case TransactionState.EMPTY:
            return init(name=name, timeout_ms=after.timeout_ms)
        case TransactionState.ONGOING:
            partitions = after.partitions
            return add(producer_id, epoch, *partitions, name=name, version=after.client_version)
        case TransactionState.PREPARE_COMMIT:
            return commit(producer_id, epoch, name=name, version=after.client_version)
        case TransactionState.PREPARE_ABORT:
            return abort(producer_id, epoch, name=name, version=after.client_version)
        case _:
            return written(world.effects.pop())


def test_records_of_kafka_replay_to_the_transactions_that_kafka_listed(
    kafkas: list[tuple[str, int, KeyValue]],
) -> None:
    shard = TransactionShard(SETTINGS, lambda: None)
    for life, _, (key, value) in kafkas:
        if life == "clean":
            shard.replay(-1, key, value)
    said = expected("clean", "cluster")["transactions"]
    assert {
        (one.transactional_id, one.producer_id, one.state.kafka_name)
        for one in shard.by_id.values()
    } == {(row["TransactionalId"], int(row["ProducerId"]), row["TransactionState"]) for row in said}


def test_each_id_is_in_the_shard_of_its_partition(
    kafkas: list[tuple[str, int, KeyValue]],
) -> None:
    placed = {(read_transactional_id(key), partition) for _, partition, (key, _) in kafkas}
    assert {partition for _, partition in placed} == {0, 1}
    assert all(coordinator_partition(name, 2) == partition for name, partition in placed)


@pytest.mark.parametrize("state", list(TransactionState)[:6])
def test_stored_transaction_can_be_read(state: TransactionState) -> None:
    full = transaction(state, epoch=32767, previous_id=9, next_id=11, version=TV2)
    for one in (transaction(state), full):
        key, value = transaction_record(one)
        assert value is not None
        assert read_transaction(read_transactional_id(key), value) == one


def test_partitions_are_stored_by_topic_and_in_order() -> None:
    _, value = transaction_record(transaction(ONGOING, partitions=(U0, T1, T0)))
    assert value is not None
    again = transaction_record(transaction(ONGOING, partitions=(T0, T1, U0)))[1]
    assert again == value
    assert value.index(b"t") < value.index(b"u")
    assert value.count(b"t") == 1


def test_tombstone_can_be_replayed_twice() -> None:
    world = World(transaction(), transaction(transactional_id="y"))
    for _ in range(2):
        world.shard.replay(-1, *transaction_tombstone("x"))
        assert list(world.shard.by_id) == ["y"]
    world.shard.replay(-1, *transaction_tombstone("y"))
    assert world.shard.bytes_used == 0


def test_values_of_the_first_version_are_read() -> None:
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=5,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[0])],
        transaction_last_update_timestamp_ms=3,
        transaction_start_timestamp_ms=2,
    )
    read = read_transaction("x", encode_record_value(value, 0))
    assert (read.state, read.partitions, read.client_version) == (ONGOING, frozenset({T0}), 0)
    assert (read.previous_producer_id, read.next_producer_id) == (-1, -1)


def test_previous_producer_id_that_equals_the_current_one_is_read_as_none() -> None:
    value = TransactionLogValue(producer_id=7, previous_producer_id=7, transaction_status=4)
    assert read_transaction("x", encode_record_value(value, 1)).previous_producer_id == -1


def test_partitions_may_be_missing() -> None:
    value = TransactionLogValue(producer_id=7, transaction_status=2, transaction_partitions=None)
    read = read_transaction("x", encode_record_value(value, 1))
    assert (read.state, read.partitions) == (PREPARE_COMMIT, frozenset())


@pytest.mark.parametrize("status", [-1, 6, 7, 8, 127])
def test_invalid_state_in_a_record_is_rejected(status: int) -> None:
    value = TransactionLogValue(producer_id=7, transaction_status=status)
    with pytest.raises(ValueError, match=r"stored as|not a valid"):
        read_transaction("x", encode_record_value(value, 1))


def test_unknown_kind_of_record_is_skipped() -> None:
    world = World()
    world.shard.replay(-1, b"\0\1whatever", b"value")
    assert not world.shard.by_id


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b""),
        (b"\0\0", b"\0\1"),
        (b"\0\0\0\5ab", None),
        (transaction_record(transaction())[0], b""),
        (transaction_record(transaction())[0], b"\0\2" + b"\0" * 40),
        (transaction_record(transaction())[0], b"\xff\xff" + b"\0" * 40),
        (transaction_record(transaction())[0], (transaction_record(transaction())[1] or b"")[:-4]),
    ],
)
def test_invalid_record_is_rejected_and_changes_nothing(key: bytes, value: bytes | None) -> None:
    world = World(transaction(EMPTY, epoch=3))
    before = world.dump()
    with pytest.raises(ProtocolError):
        world.shard.replay(-1, key, value)
    assert world.dump() == before
