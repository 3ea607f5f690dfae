"""FindCoordinator: groups and transactions have coordinators; share groups have none."""

import logging

import pytest

from pykafka_core.broker.rate_limited_logging import INTERVAL_NS
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.errors import KafkaStorageError
from pykafka_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka_core.types import RESOURCE_TOPIC
from tests.support.simulated.broker import SimulatedBroker

HERE = (0, 1, "127.0.0.1", 9092)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("version", range(1, 4))
def test_this_node_coordinates_groups_and_transactions(
    broker: SimulatedBroker, version: int, kind: int
) -> None:
    response = broker.ask(FindCoordinatorRequest(key="name", key_type=kind), version)
    assert isinstance(response, FindCoordinatorResponse)
    assert (response.error_code, response.node_id, response.host, response.port) == HERE


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("version", range(4, 7))
def test_every_key_of_a_batch_is_answered(broker: SimulatedBroker, version: int, kind: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=kind)
    response = broker.ask(request, version)
    assert isinstance(response, FindCoordinatorResponse)
    found = [(c.key, c.error_code, c.node_id, c.host, c.port) for c in response.coordinators]
    assert found == [("a", *HERE), ("b", *HERE)]


def test_first_group_creates_the_offsets_topic() -> None:
    config = {"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "2097152"}
    broker = SimulatedBroker(config)
    for key in ("a", "b"):
        broker.ask(FindCoordinatorRequest(key=key), 3)
    topic = broker.image.topics.by_name["__consumer_offsets"]
    assert sorted(topic.partitions) == list(range(7))
    assert {partition.replicas for partition in topic.partitions.values()} == {(1,)}
    assert broker.image.configs.of(RESOURCE_TOPIC, topic.name) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2097152",
    }


def test_first_transactional_id_creates_the_transaction_topic() -> None:
    config = {
        "transaction.state.log.num.partitions": "7",
        "transaction.state.log.segment.bytes": "2097152",
        "transaction.state.log.min.isr": "1",
    }
    broker = SimulatedBroker(config)
    for key in ("a", "b"):
        broker.ask(FindCoordinatorRequest(key=key, key_type=1), 3)
    topic = broker.image.topics.by_name["__transaction_state"]
    assert sorted(topic.partitions) == list(range(7))
    assert broker.image.configs.of(RESOURCE_TOPIC, topic.name) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "2097152",
        "unclean.leader.election.enable": "false",
    }


def test_group_whose_topic_cannot_be_created_has_no_coordinator() -> None:
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    asked = broker.send(FindCoordinatorRequest(key="group"), 3)
    broker.run()
    assert broker.response(asked) is None
    broker.core.complete_append(KafkaStorageError.code)
    broker.run()
    response = broker.response(asked)
    assert isinstance(response, FindCoordinatorResponse)
    assert (response.error_code, response.node_id) == (15, -1)
    assert "__consumer_offsets" not in broker.image.topics.by_name


@pytest.mark.parametrize(
    ("kind", "topic", "setting"),
    [
        (0, "__consumer_offsets", "offsets.topic.replication.factor"),
        (1, "__transaction_state", "transaction.state.log.replication.factor"),
    ],
)
def test_too_few_brokers_for_the_replication_factor_create_no_topic(
    caplog: pytest.LogCaptureFixture, kind: int, topic: str, setting: str
) -> None:
    """A topic with fewer replicas than configured would never get more."""
    broker = SimulatedBroker({setting: "3"})
    response = broker.ask(FindCoordinatorRequest(key="key", key_type=kind), 3)
    assert isinstance(response, FindCoordinatorResponse)
    assert (response.error_code, response.node_id) == (15, -1)
    assert topic not in broker.image.topics.by_name
    (warning,) = caplog.messages
    assert warning == (
        f"{topic} cannot be created: Unable to replicate the partition 3 time(s): "
        "The target replication factor of 3 cannot be reached because only 1 broker(s) are "
        f"registered. {setting} needs 3 running broker(s)."
    )


def test_a_partition_without_a_leader_has_no_coordinator(broker: SimulatedBroker) -> None:
    key = "group"
    broker.ask(FindCoordinatorRequest(key=key), 3)
    topic = broker.image.topics.by_name["__consumer_offsets"]
    index = coordinator_partition(key, len(topic.partitions))
    topic.partitions[index] = topic.partitions[index]._replace(leader=-1)
    response = broker.ask(FindCoordinatorRequest(key=key), 3)
    assert isinstance(response, FindCoordinatorResponse)
    assert response.error_code == 15


def test_repeated_requests_of_a_client_log_one_warning_a_minute(
    broker: SimulatedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            broker.ask(FindCoordinatorRequest(key="name", key_type=2), 3)
        (first,) = caplog.messages
        broker.core.clock_ns += INTERVAL_NS
        broker.ask(FindCoordinatorRequest(key="name", key_type=2), 3)
    assert first == "client 'test' at 127.0.0.1 uses share groups, which are not built"
    assert caplog.messages[1:] == [f"{first} (99 more since the last report)"]


def test_an_unknown_kind_of_key_is_invalid(broker: SimulatedBroker) -> None:
    response = broker.ask(FindCoordinatorRequest(key="group", key_type=9), 3)
    assert isinstance(response, FindCoordinatorResponse)
    assert response.error_code == 42


GOOD = "g:AAAAAAAAAAAAAAAAAAAAAg:0"


@pytest.mark.parametrize(
    ("version", "key", "code"),
    [
        (3, GOOD, 42),
        (4, GOOD, 42),
        (5, GOOD, 42),
        (6, GOOD, 15),
        (6, "bad", 42),
        (6, "g:x:0", 42),
        (6, GOOD.removeprefix("g"), 42),
        (6, GOOD.removesuffix("0"), 42),
        (6, GOOD.removesuffix("0") + "z", 42),
        (6, GOOD.removesuffix("0") + "2147483648", 42),
    ],
)
def test_key_of_a_share_group_is_checked_as_in_kafka(
    broker: SimulatedBroker, version: int, key: str, code: int
) -> None:
    keys = {"key": key} if version < 4 else {"coordinator_keys": [key]}
    response = broker.ask(FindCoordinatorRequest(key_type=2, **keys), version)
    assert isinstance(response, FindCoordinatorResponse)
    codes = [response.error_code] if version < 4 else [c.error_code for c in response.coordinators]
    assert codes == [code]
