"""DescribeLogDirs: KIP-113, KIP-827."""

import pytest

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from pykafka_core.testing.simulated_broker import SimulatedBroker

Asked = DescribeLogDirsRequest.DescribableLogDirTopic


@pytest.fixture(autouse=True)
def orders(broker: SimulatedBroker) -> None:
    """A topic of two partitions, one with a record."""
    topic = CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=2, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]))
    topic_id = broker.image.topics.by_name["orders"].topic_id
    broker.core.append(10**9, (topic_id, 1), 0, [(None, b"record")])
    broker.run()


def describe(
    broker: SimulatedBroker, topics: list[Asked] | None = None, version: int = 4
) -> dict[tuple[str, int], int]:
    answer = broker.ask(DescribeLogDirsRequest(topics=topics), version)
    assert isinstance(answer, DescribeLogDirsResponse)
    (directory,) = answer.results
    assert (directory.error_code, directory.log_dir) == (0, "memory")
    return {
        (topic.name, p.partition_index): p.partition_size
        for topic in directory.topics
        for p in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_null_asks_for_every_replica_in_every_version(
    broker: SimulatedBroker, version: int
) -> None:
    sizes = describe(broker, version=version)
    assert sizes.keys() == {("orders", 0), ("orders", 1)}
    assert sizes["orders", 0] == 0
    assert sizes["orders", 1] > 61


def test_only_what_is_asked_for_and_exists_is_told(broker: SimulatedBroker) -> None:
    asked = [Asked(topic="orders", partitions=[1, 9]), Asked(topic="nobody", partitions=[0])]
    assert describe(broker, asked).keys() == {("orders", 1)}
    assert describe(broker, []) == {}
