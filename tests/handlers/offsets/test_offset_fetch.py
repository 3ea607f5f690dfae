"""OffsetFetch: the committed offsets of groups, in the format of each version."""

import pytest

from pykafka_core._core import crc32c
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.coordinator.group.offsets.table import Committed
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from pykafka_core.types import GROUP_TOPIC
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import (
    TOPIC,
    broker_with_topic,
    commit,
    create_topic,
    fetch,
    topic_id,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore, encode_batch


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_fetches_committed_offsets_and_minus_one_without_a_commit(
    version: int,
) -> None:
    broker = broker_with_topic()
    commit(broker, {1: 8})
    epoch = 4 if version >= 5 else -1
    assert fetch(broker, [0, 1], version) == {0: (-1, -1, "", 0), 1: (8, epoch, "m", 0)}


@pytest.mark.parametrize("version", range(2, 11))
def test_without_topics_all_offsets_of_a_group_are_fetched(version: int) -> None:
    broker = broker_with_topic()
    commit(broker, {0: 3, 2: 5})
    fetched = fetch(broker, None, version)
    assert {index: row[0] for index, row in fetched.items()} == {0: 3, 2: 5}
    assert fetch(broker, None, version, group_id="another") == {}


@pytest.mark.parametrize("version", range(1, 11))
def test_missing_group_has_no_committed_offsets(version: int) -> None:
    broker = broker_with_topic()
    assert fetch(broker, [0], version, group_id="absent") == {0: (-1, -1, "", 0)}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_many_groups_are_fetched_at_once(version: int) -> None:
    broker = broker_with_topic()
    for number in range(3):
        commit(broker, {0: number}, group_id=f"g{number}")
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    groups = [of(group_id=f"g{number}", topics=None) for number in (2, 0, 1)]
    response = broker.ask(OffsetFetchRequest(groups=groups), version)
    assert isinstance(response, OffsetFetchResponse)
    found = [(g.group_id, g.topics[0].partitions[0].committed_offset) for g in response.groups]
    assert found == [("g2", 2), ("g0", 0), ("g1", 1)]


def test_unknown_topic_id_returns_an_error() -> None:
    broker = broker_with_topic()
    assert fetch(broker, [0, 1], 10, topic="absent") == {
        0: (-1, -1, "", 100),
        1: (-1, -1, "", 100),
    }


@pytest.mark.parametrize("version", range(1, 11))
def test_without_the_offsets_topic_there_is_no_coordinator(version: int) -> None:
    broker = SimulatedBroker()
    if version < 2:
        assert fetch(broker, [0], version) == {0: (-1, -1, "", 15)}
        return
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    request = (
        OffsetFetchRequest(group_id="g", topics=None)
        if version < 8
        else OffsetFetchRequest(groups=[group])
    )
    response = broker.ask(request, version)
    assert isinstance(response, OffsetFetchResponse)
    assert (response.error_code if version < 8 else response.groups[0].error_code) == 15


def test_offsets_of_a_deleted_topic_are_removed_and_those_of_its_successor_stay() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 5, 1: 6})
    broker.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)]))
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=3, replication_factor=1)
    broker.ask(CreateTopicsRequest(topics=[topic]))
    commit(broker, {1: 7})
    pass_ms(broker, 10)
    assert [row[0] for row in fetch(broker, [0, 1]).values()] == [-1, 7]


def reloaded(broker: SimulatedBroker, *batches: bytes) -> SimulatedBroker:
    """Return a broker whose log of the group's coordinator has more batches."""
    partition = coordinator_partition("g", len(broker.image.topics.by_name[GROUP_TOPIC].partitions))
    log = broker.core.logs[topic_id(broker, GROUP_TOPIC), partition]
    for batch in batches:
        log.batches.append((log.end, log.end + 1, log.end.to_bytes(8, "big") + batch[8:]))
        log.end = log.high_watermark = log.end + 1
    return SimulatedBroker(core=FakeCore(logs=broker.core.logs), ids=broker.ids)


def of_transaction(records: list[KeyValue], control: bool = False) -> bytes:
    """Return a batch of producer 7, with a new checksum."""
    batch = encode_batch(0, 0, 0, records, control)
    fields = bytearray(batch[21:])
    fields[1] |= 1 << 4
    fields[22:30] = (7).to_bytes(8, "big")
    return batch[:17] + crc32c(bytes(fields)).to_bytes(4, "big") + fields


def offset_of_transaction(offset: int, partition: int) -> bytes:
    return of_transaction([OffsetRecords("g", TOPIC).of(partition, Committed(offset, 4, "t", 0))])


COMMIT_MARKER = of_transaction([(b"\0\0\0\1", bytes(6))], control=True)
ABORT_MARKER = of_transaction([(b"\0\0\0\0", bytes(6))], control=True)


@pytest.mark.parametrize("version", range(7, 11))
def test_stable_offsets_are_not_returned_during_an_open_transaction(version: int) -> None:
    broker = broker_with_topic()
    commit(broker, {0: 5, 1: 6})
    again = reloaded(broker, offset_of_transaction(9, 0), offset_of_transaction(3, 2))
    stable = fetch(again, [0, 1, 2], version, require_stable=True)
    assert stable == {0: (-1, -1, "", 88), 1: (6, 4, "m", 0), 2: (-1, -1, "", 88)}
    assert fetch(again, [0, 1, 2], version) == {
        0: (5, 4, "m", 0),
        1: (6, 4, "m", 0),
        2: (-1, -1, "", 0),
    }
    assert fetch(again, None, version, require_stable=True)[0][3] == 88


@pytest.mark.parametrize(("marker", "offset"), [(COMMIT_MARKER, 9), (ABORT_MARKER, 5)])
def test_marker_of_a_transaction_makes_its_offsets_stable(marker: bytes, offset: int) -> None:
    broker = broker_with_topic()
    commit(broker, {0: 5})
    again = reloaded(broker, offset_of_transaction(9, 0), marker)
    assert fetch(again, [0], require_stable=True)[0][::3] == (offset, 0)


@pytest.mark.parametrize("version", range(2, 11))
def test_request_for_no_topics_differs_from_one_for_all(version: int) -> None:
    broker = broker_with_topic()
    commit(broker, {0: 3})
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    request = (
        OffsetFetchRequest(group_id="g", topics=[])
        if version < 8
        else OffsetFetchRequest(groups=[of(group_id="g", topics=[])])
    )
    response = broker.ask(request, version)
    assert isinstance(response, OffsetFetchResponse)
    assert (response.topics if version < 8 else response.groups[0].topics) == []


@pytest.mark.parametrize("version", [1, 2, 9])
def test_missing_topics_have_no_offset_and_no_error(version: int) -> None:
    assert fetch(broker_with_topic(), [0], version, topic="absent") == {0: (-1, -1, "", 0)}


def test_all_topics_of_a_group_are_fetched_each_with_its_partitions() -> None:
    broker = broker_with_topic()
    create_topic(broker, name="payments")
    commit(broker, {0: 3, 2: 4})
    commit(broker, {1: 5}, topic="payments")
    for version in (8, 9, 10):
        of = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
        response = broker.ask(OffsetFetchRequest(groups=[of]), version)
        assert isinstance(response, OffsetFetchResponse)
        found = {
            (topic.topic_id if version >= 10 else topic.name): {
                row.partition_index: row.committed_offset for row in topic.partitions
            }
            for topic in response.groups[0].topics
        }
        names = ("orders", "payments")
        first, second = (topic_id(broker, name) if version >= 10 else name for name in names)
        assert found == {first: {0: 3, 2: 4}, second: {1: 5}}


def test_batched_request_without_groups_gets_a_reply_without_groups() -> None:
    response = broker_with_topic().ask(OffsetFetchRequest(groups=[]), 9)
    assert isinstance(response, OffsetFetchResponse)
    assert response.groups == []


def test_a_group_that_is_named_twice_is_answered_twice() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 3})
    of = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    response = broker.ask(OffsetFetchRequest(groups=[of, of]), 9)
    assert isinstance(response, OffsetFetchResponse)
    assert [one.topics[0].partitions[0].committed_offset for one in response.groups] == [3, 3]
