"""Records of Apache Kafka in __consumer_offsets lead to the groups and offsets that it returned."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.partitions import coordinator_partition
from tests.coordinator.classic.world import SETTINGS

EXPECTED = Path(__file__).parents[2] / "formats/golden/clean/expected"
PARTITIONS = 2


def expected(name: str) -> Any:
    return json.loads((EXPECTED / f"{name}.json").read_text())


def loaded(partition: int) -> GroupShard:
    """Return a shard that has replayed all records of Kafka in a partition."""
    shard = GroupShard(SETTINGS, lambda: "uuid", lambda _: bytes(16))
    for batch in expected(f"__consumer_offsets-{partition}")["batches"]:
        producer_id = batch["producer_id"]
        for record in batch["records"]:
            if batch["control"]:
                shard.replay_marker(producer_id, committed=record["control_type"] == "COMMIT")
                continue
            value = None if record["value"] is None else b64decode(record["value"])
            writer = producer_id if batch["transactional"] else -1
            shard.replay(writer, b64decode(record["key"]), value)
    return shard


@pytest.fixture(scope="module")
def shards() -> list[GroupShard]:
    return [loaded(partition) for partition in range(PARTITIONS)]


def test_offsets_equal_those_that_kafka_listed(shards: list[GroupShard]) -> None:
    ours = {
        (group_id, topic, partition, one.offset, one.leader_epoch, one.metadata)
        for shard in shards
        for group_id in (*shard.groups, *shard.consumer_groups)
        for topic, partitions in shard.offsets.topics(group_id).items()
        for partition, one in partitions.items()
    }
    names = ("group", "topic", "partition", "offset", "leader_epoch", "metadata")
    said = expected("cluster")["group_offsets"]
    assert ours == {tuple(row[name] for name in names) for row in said}
    assert sum(len(shard.offsets) for shard in shards) == len(said)


def test_no_transaction_is_open(shards: list[GroupShard]) -> None:
    # Kafka's log has one committed transaction and one aborted transaction.
    assert not any(
        shard.offsets.pending_places(group_id) for shard in shards for group_id in shard.groups
    )


def test_classic_groups_equal_those_that_kafka_listed(shards: list[GroupShard]) -> None:
    groups = {name: group for shard in shards for name, group in shard.groups.items()}
    said = {row["GroupId"]: row for row in expected("cluster")["groups"]}
    classic = {name: row for name, row in said.items() if row["GroupType"] == "classic"}
    assert {
        name: (group.state.value, group.protocol_type or "")
        for name, group in groups.items()
        if name in classic
    } == {name: (row["GroupState"], row["ProtocolType"]) for name, row in classic.items()}
    assert groups.keys() == classic.keys()


def test_consumer_groups_equal_those_that_kafka_listed(shards: list[GroupShard]) -> None:
    groups = {name: group for shard in shards for name, group in shard.consumer_groups.items()}
    assert {name: group.state.value for name, group in groups.items()} == {
        row["GroupId"]: row["GroupState"]
        for row in expected("cluster")["groups"]
        if row["GroupType"] == "consumer"
    }


def test_each_group_is_in_the_shard_of_its_partition(shards: list[GroupShard]) -> None:
    for partition, shard in enumerate(shards):
        assert shard.groups
        assert {coordinator_partition(name, PARTITIONS) for name in shard.groups} == {partition}
