"""DeleteTopics: contract/kafka.md#40."""

import pytest

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from pykafka_core.types import RESOURCE_TOPIC, ZERO_ID
from tests.support.simulated.broker import SimulatedBroker

State = DeleteTopicsRequest.DeleteTopicState
Result = DeleteTopicsResponse.DeletableTopicResult


def make(broker: SimulatedBroker, *names: str) -> None:
    config = CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="1000")
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, configs=[config]
        )
        for name in names
    ]
    broker.ask(CreateTopicsRequest(topics=topics))


def delete(broker: SimulatedBroker, *states: State) -> list[Result]:
    response = broker.ask(DeleteTopicsRequest(topics=list(states)), 6)
    assert isinstance(response, DeleteTopicsResponse)
    return response.responses


@pytest.mark.parametrize("version", range(1, 6))
def test_a_topic_is_deleted_by_name(broker: SimulatedBroker, version: int) -> None:
    make(broker, "orders")
    response = broker.ask(DeleteTopicsRequest(topic_names=["orders"]), version)
    assert isinstance(response, DeleteTopicsResponse)
    assert [(r.name, r.error_code) for r in response.responses] == [("orders", 0)]
    assert broker.image.topics.by_name == {}


def test_a_topic_is_deleted_by_id_with_its_settings(broker: SimulatedBroker) -> None:
    make(broker, "orders")
    topic_id = broker.image.topics.by_name["orders"].topic_id
    result = delete(broker, State(topic_id=topic_id))[0]
    assert (result.name, result.topic_id, result.error_code) == ("orders", topic_id, 0)
    assert broker.image.configs.of(RESOURCE_TOPIC, "orders") == {}
    assert topic_id not in broker.core.topics


def test_recreated_topic_has_a_new_id(broker: SimulatedBroker) -> None:
    make(broker, "orders")
    old = broker.image.topics.by_name["orders"].topic_id
    delete(broker, State(name="orders"))
    make(broker, "orders")
    assert broker.image.topics.by_name["orders"].topic_id != old


def test_unknown_name_and_unknown_id_have_different_codes(broker: SimulatedBroker) -> None:
    results = delete(broker, State(name="nobody"), State(topic_id=b"x" * 16))
    assert [result.error_code for result in results] == [3, 100]


@pytest.mark.parametrize(
    ("states", "codes"),
    [
        ([State(name="orders"), State(name="orders")], [42]),
        ([State(name=None, topic_id=ZERO_ID)], [42]),
        ([State(name="orders", topic_id=b"x" * 16)], [42]),
    ],
    ids=["twice", "neither", "both"],
)
def test_contradictions_are_invalid(
    broker: SimulatedBroker, states: list[State], codes: list[int]
) -> None:
    make(broker, "orders")
    assert [result.error_code for result in delete(broker, *states)] == codes
    assert "orders" in broker.image.topics.by_name


def test_name_and_id_of_one_topic_are_a_contradiction(broker: SimulatedBroker) -> None:
    make(broker, "orders")
    topic_id = broker.image.topics.by_name["orders"].topic_id
    results = delete(broker, State(name="orders"), State(topic_id=topic_id))
    assert [(result.name, result.error_code) for result in results] == [("orders", 42)]
    assert "orders" in broker.image.topics.by_name


@pytest.mark.parametrize(("version", "code"), [(1, 42), (2, 42), (3, 73), (5, 73)])
def test_deletion_can_be_disabled(version: int, code: int) -> None:
    broker = SimulatedBroker({"delete.topic.enable": "false"})
    make(broker, "orders")
    response = broker.ask(DeleteTopicsRequest(topic_names=["orders"]), version)
    assert isinstance(response, DeleteTopicsResponse)
    assert [result.error_code for result in response.responses] == [code]
    assert "orders" in broker.image.topics.by_name
