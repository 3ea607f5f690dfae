"""OffsetFetch: what groups have committed, in each version's form."""

import pytest

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from pykafka_core.testing.simulated_broker import SimulatedBroker
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import TOPIC, broker_with_topic, commit, fetch


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_fetches_what_is_committed_and_minus_one_for_nothing(version: int) -> None:
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
def test_a_group_that_does_not_exist_has_committed_nothing(version: int) -> None:
    broker = broker_with_topic()
    assert fetch(broker, [0], version, group_id="absent") == {0: (-1, -1, "", 0)}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_many_groups_are_fetched_at_once(version: int) -> None:
    broker = broker_with_topic()
    for number in range(3):
        commit(broker, {0: number}, group_id=f"g{number}")
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    groups = [of(group_id=f"g{number}", topics=None) for number in (2, 0, 1)]
    answer = broker.ask(OffsetFetchRequest(groups=groups), version)
    assert isinstance(answer, OffsetFetchResponse)
    found = [(g.group_id, g.topics[0].partitions[0].committed_offset) for g in answer.groups]
    assert found == [("g2", 2), ("g0", 0), ("g1", 1)]


def test_an_unknown_topic_id_is_told() -> None:
    broker = broker_with_topic()
    assert fetch(broker, [0, 1], 10, topic="absent") == {
        0: (-1, -1, "", 100),
        1: (-1, -1, "", 100),
    }


@pytest.mark.parametrize("version", range(1, 11))
def test_without_the_topic_of_the_coordinators_there_is_no_coordinator(version: int) -> None:
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
    answer = broker.ask(request, version)
    assert isinstance(answer, OffsetFetchResponse)
    assert (answer.error_code if version < 8 else answer.groups[0].error_code) == 15


def test_offsets_of_a_deleted_topic_are_gone_and_those_of_a_new_one_of_its_name_stay() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 5, 1: 6})
    broker.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)]))
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=3, replication_factor=1)
    broker.ask(CreateTopicsRequest(topics=[topic]))
    commit(broker, {1: 7})
    pass_ms(broker, 10)
    assert [row[0] for row in fetch(broker, [0, 1]).values()] == [-1, 7]
