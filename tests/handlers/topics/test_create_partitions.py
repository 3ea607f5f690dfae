"""CreatePartitions: contract/kafka.md#37."""

from collections.abc import Sequence

import pytest

from pykafka_core.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
)
from tests.support.simulated.broker import SimulatedBroker

Topic = CreatePartitionsRequest.CreatePartitionsTopic


@pytest.fixture(autouse=True)
def orders(broker: SimulatedBroker) -> None:
    """Create a topic with two partitions."""
    topic = CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=2, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]))


def topic(count: int, assignments: Sequence[Sequence[int]] | None = None) -> Topic:
    return Topic(
        name="orders",
        count=count,
        assignments=None
        if assignments is None
        else [
            CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(brokers))
            for brokers in assignments
        ],
    )


def grow(
    broker: SimulatedBroker, *topics: Topic, version: int = 3, validate_only: bool = False
) -> list[tuple[str, int]]:
    request = CreatePartitionsRequest(
        topics=list(topics), timeout_ms=1000, validate_only=validate_only
    )
    response = broker.ask(request, version)
    assert isinstance(response, CreatePartitionsResponse)
    return [(result.name, result.error_code) for result in response.results]


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version(broker: SimulatedBroker, version: int) -> None:
    assert grow(broker, topic(5), version=version) == [("orders", 0)]
    made = broker.image.topics.by_name["orders"]
    assert sorted(made.partitions) == [0, 1, 2, 3, 4]
    assert len(broker.core.topics[made.topic_id].partitions) == 5


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic(2), 37),
        (topic(1), 37),
        (topic(0), 37),
        (topic(-1), 37),
        (Topic(name="nobody", count=3, assignments=None), 3),
        (topic(4, [[1]]), 39),
        (topic(3, [[7]]), 39),
        (topic(3, [[1, 1]]), 39),
        (topic(3, [[]]), 39),
        (topic(1_000_000), 44),
        (topic(2**31 - 1), 44),
    ],
    ids=str,
)
def test_invalid_partition_counts_and_assignments_are_rejected(
    broker: SimulatedBroker, asked: Topic, code: int
) -> None:
    assert grow(broker, asked) == [(asked.name, code)]
    assert len(broker.image.topics.by_name["orders"].partitions) == 2


def test_manual_assignment_is_accepted(broker: SimulatedBroker) -> None:
    assert grow(broker, topic(3, [[1]])) == [("orders", 0)]


def test_duplicate_topic_is_rejected_in_one_row(broker: SimulatedBroker) -> None:
    assert grow(broker, topic(3), topic(4)) == [("orders", 42)]


def test_validate_only_adds_nothing(broker: SimulatedBroker) -> None:
    assert grow(broker, topic(3), validate_only=True) == [("orders", 0)]
    assert len(broker.image.topics.by_name["orders"].partitions) == 2
