"""DescribeLogDirs: KIP-113, KIP-827."""

from typing import TYPE_CHECKING, Literal

import pytest

from pykafka_core._core import DiskState, PartitionState, encode_message
from pykafka_core.errors import KafkaStorageError
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID
from tests.support.simulated.broker import SimulatedBroker

if TYPE_CHECKING:
    from pykafka_core._core import LogFault

DESCRIBE_LOG_DIRS = 35
Asked = DescribeLogDirsRequest.DescribableLogDirTopic


@pytest.fixture(autouse=True)
def orders(broker: SimulatedBroker) -> None:
    """Create a topic with two partitions; the second one has a record."""
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
    response = broker.ask(DescribeLogDirsRequest(topics=topics), version)
    assert isinstance(response, DescribeLogDirsResponse)
    (directory,) = response.results
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


def test_only_requested_replicas_that_exist_are_described(broker: SimulatedBroker) -> None:
    asked = [Asked(topic="orders", partitions=[1, 9]), Asked(topic="nobody", partitions=[0])]
    assert describe(broker, asked).keys() == {("orders", 1)}
    assert describe(broker, []) == {}


@pytest.mark.parametrize(
    ("faults", "state"),
    [
        (["read_only"], "read_only"),
        (["unreadable"], "unreadable"),
        (["uncleanable"], "uncleanable"),
        (["offline", "unreadable"], "offline_replica,unreadable"),
    ],
)
def test_a_replica_that_is_damaged_or_failed_has_states_in_flexible_versions(
    broker: SimulatedBroker, faults: "list[LogFault]", state: str
) -> None:
    topic_id = broker.image.topics.by_name["orders"].topic_id
    broker.core.push(PartitionState(topic_id, 1, dict.fromkeys(faults, "as the test says")))
    broker.run()
    for version in range(1, 6):
        (topic,) = asked(broker, version).topics
        shown = [p.state for p in topic.partitions]
        assert shown == (["", state] if version >= 2 else ["", ""])


def test_metadata_log_is_listed_while_it_has_a_fault(
    broker: SimulatedBroker,
) -> None:
    broker.core.push(PartitionState(METADATA_TOPIC_ID, 0, {"read_only": "as the test says"}))
    broker.run()
    states = {topic.name: topic.partitions[0].state for topic in asked(broker, 2).topics}
    assert states == {METADATA_TOPIC: "read_only", "orders": ""}
    broker.core.push(PartitionState(METADATA_TOPIC_ID, 0, {}))
    broker.run()
    assert [topic.name for topic in asked(broker, 2).topics] == ["orders"]


@pytest.mark.parametrize(
    ("level", "error_code", "state"),
    [("ok", 0, ""), ("full", 0, "full_directory"), ("failed", KafkaStorageError.code, "")],
)
def test_failed_directory_is_an_error_as_in_kafka_and_a_full_one_is_a_state(
    broker: SimulatedBroker, level: Literal["ok", "full", "failed"], error_code: int, state: str
) -> None:
    broker.core.push(DiskState(level, "as the test says"))
    broker.run()
    directory = asked(broker, 2)
    assert (directory.error_code, directory.state) == (error_code, state)
    assert [topic.name for topic in directory.topics] == ["orders"]


def asked(broker: SimulatedBroker, version: int) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    """Return the only directory, as a client decodes it."""
    response = broker.ask(DescribeLogDirsRequest(topics=None), version)
    body = encode_message(response, version)
    read = decode_response(DESCRIBE_LOG_DIRS, version, body)
    assert isinstance(read, DescribeLogDirsResponse)
    (directory,) = read.results
    return directory
