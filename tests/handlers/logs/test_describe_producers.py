"""DescribeProducers: KIP-664."""

import pytest

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import ProducerState

Partition = DescribeProducersResponse.PartitionResponse


@pytest.fixture(autouse=True)
def orders(broker: SimulatedBroker) -> None:
    """Create a topic with records of one producer."""
    topic = CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=1, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]))
    topic_id = broker.image.topics.by_name["orders"].topic_id
    broker.core.producers[topic_id, 0] = [
        ProducerState(producer_id=5, producer_epoch=2, last_sequence=9, last_timestamp_ms=77)
    ]


def describe(broker: SimulatedBroker, name: str, index: int) -> Partition:
    topic = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[index])
    response = broker.ask(DescribeProducersRequest(topics=[topic]))
    assert isinstance(response, DescribeProducersResponse)
    return response.topics[0].partitions[0]


def test_producers_are_described(broker: SimulatedBroker) -> None:
    (producer,) = describe(broker, "orders", 0).active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (5, 2, 9)
    assert (producer.last_timestamp, producer.current_txn_start_offset) == (77, -1)


def test_partition_named_many_times_is_described_once(
    broker: SimulatedBroker,
) -> None:
    topic = DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=[0] * 1_000)
    response = broker.ask(DescribeProducersRequest(topics=[topic] * 3))
    assert isinstance(response, DescribeProducersResponse)
    (described,) = response.topics
    (partition,) = described.partitions
    assert len(partition.active_producers) == 1


@pytest.mark.parametrize(
    ("name", "index", "code"), [("orders", 1, 3), ("nobody", 0, 3), ("no/name", 0, 17)]
)
def test_unknown_topic_or_partition_returns_an_error(
    broker: SimulatedBroker, name: str, index: int, code: int
) -> None:
    partition = describe(broker, name, index)
    assert (partition.error_code, partition.active_producers) == (code, [])
