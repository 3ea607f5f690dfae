"""Stored groups: records of Kafka are read, and written again byte for byte."""

import base64
import json
from itertools import pairwise

import pytest

from pykafka_core.coordinator.group.classic.records import (
    group_record,
    group_tombstone,
    replay_group,
    stored_member,
)
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.coordinator_records import encode_record_value
from pykafka_core.protocol.messages import GroupMetadataValue
from tests.coordinator.classic.world import CHANGED, World, leave
from tests.protocol.frames import GOLDEN

ROWS = [json.loads(line) for line in (GOLDEN / "stored_records.jsonl").read_text().splitlines()]
STORED = [
    (base64.b64decode(row["key_bytes"]), base64.b64decode(row["value_bytes"]))
    for row in ROWS
    if row["key_type"] == "GroupMetadataKey" and row["value"]
]


def test_kafka_stored_some_groups() -> None:
    assert len(STORED) >= 2


@pytest.mark.parametrize(("key", "value"), STORED)
def test_group_stored_by_kafka_is_stored_again_unchanged(key: bytes, value: bytes) -> None:
    world = World()
    replay_group(world.state, key, value)
    (group,) = world.state.groups.values()
    members = [
        stored_member(one, group.protocol_name, one.assignment) for one in group.members.values()
    ]
    assert group_record(group, members, group.leader_id) == (key, value)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    world = World()
    world.stable("A", "B", instance=None)
    key, _ = world.records[-1]
    members = [stored_member(one, "range", b"x") for one in world.group.members.values()]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=7, protocol="range", leader="A", members=members
    )
    if version >= 2:
        value.current_state_timestamp = 5
    world.records = [(key, encode_record_value(value, version))]
    group = world.reload().group
    assert (group.state.value, group.generation_id, group.leader_id) == ("Stable", 7, "A")
    assert group.state_timestamp_ms == (5 if version >= 2 else None)
    timeouts = {one.rebalance_timeout_ms for one in group.members.values()}
    assert timeouts == {members[0].rebalance_timeout if version else members[0].session_timeout}


def test_a_tombstone_removes_the_group() -> None:
    world = World()
    world.stable("A")
    world.records.append(group_tombstone("g"))
    assert not world.reload().state.groups
    replay_group(world.state, *group_tombstone("another"))


def test_damaged_bytes_raise_a_protocol_error() -> None:
    world = World()
    world.stable("A")
    key, value = world.records[-1]
    assert value is not None
    for damaged in (b"", b"\0", b"\0\x63" + value[2:], value[:-1]):
        with pytest.raises(ProtocolError):
            replay_group(world.state, key, damaged)


def test_sessions_of_loaded_members_start_with_the_load() -> None:
    world = World()
    ids = world.stable("A", "B")
    loaded = world.reload()
    due = {loaded.state.deadlines.get(loaded.group.members[one].session_key) for one in ids}
    assert due == {(loaded.now_ms + 10_000) * 1_000_000}


# Topics that members subscribe to.


def test_consumer_group_is_subscribed_to_topics_in_member_metadata() -> None:
    world = World()
    world.stable("A", protocols=CHANGED)
    for group in (world.group, world.reload().group):
        assert group.subscribed_among(["t"])
        assert not group.subscribed_among(["u"])
    world.submit(leave(*world.group.members))
    assert not world.group.subscribed_among(["t"])


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\0\0\0\0\0\1",
        b"\0\0\0\0\0\1\0\2t",
        b"\0\0\0\0\0\1\xff\xfft",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
)
def test_metadata_that_cannot_be_parsed_counts_as_a_subscription_to_every_topic(
    metadata: bytes,
) -> None:
    world = World()
    world.stable("A", protocols=(("range", metadata),))
    assert world.group.subscribed_among(["t"])


def test_group_of_another_protocol_type_counts_as_subscribed_to_every_topic() -> None:
    world = World()
    world.stable("A", protocol_type="connect", protocols=CHANGED)
    assert world.group.subscribed_among(["u"])


def test_members_of_one_generation_are_stored_once() -> None:
    world = World()
    world.stable("A", "B")
    assert all(one != other for one, other in pairwise(world.records))
    assert len(world.records) == 2, "the new group, and the assignment"
