"""AlterReplicaLogDirs (KIP-113), with the error codes of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from tests.handlers.foreign_brokers import GONE, SELF, make_orders, register_gone
from tests.support.simulated.broker import SimulatedBroker

HERE = "memory"
"""The name of the log directory of a broker in memory."""
UNKNOWN, NOT_AVAILABLE, INVALID_TOPIC, NOT_FOUND = 3, 9, 17, 57
Move = tuple[str, str, list[int]]


def move(broker: SimulatedBroker, *moves: Move, version: int = 2) -> dict[tuple[str, int], int]:
    dirs = [
        AlterReplicaLogDirsRequest.AlterReplicaLogDir(
            path=path,
            topics=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=name, partitions=indexes)
            ],
        )
        for path, name, indexes in moves
    ]
    response = broker.ask(AlterReplicaLogDirsRequest(dirs=dirs), version)
    assert isinstance(response, AlterReplicaLogDirsResponse)
    rows = [
        ((topic.topic_name, p.partition_index), p.error_code)
        for topic in response.results
        for p in topic.partitions
    ]
    assert len(dict(rows)) == len(rows), "each partition is answered once"
    return dict(rows)


@pytest.mark.parametrize("version", [1, 2])
def test_replica_may_stay_in_its_directory(broker: SimulatedBroker, version: int) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    assert move(broker, (HERE, "orders", [0, 9, -1]), version=version) == {
        ("orders", 0): 0,
        ("orders", 9): UNKNOWN,
        ("orders", -1): UNKNOWN,
    }


@pytest.mark.parametrize("path", ["/no/such/place", "", "rel", f"{HERE}/"])
@pytest.mark.parametrize("name", ["orders", "nobody"])
def test_unknown_directory_is_not_found(broker: SimulatedBroker, path: str, name: str) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    assert move(broker, (path, name, [0])) == {(name, 0): NOT_FOUND}


@pytest.mark.parametrize(("length", "code"), [(213, UNKNOWN), (214, INVALID_TOPIC)])
def test_topic_name_too_long_for_the_directory_of_a_copy_is_rejected(
    broker: SimulatedBroker, length: int, code: int
) -> None:
    name = "x" * length
    assert move(broker, (HERE, name, [0])) == {(name, 0): code}


def test_last_directory_named_for_a_partition_wins(broker: SimulatedBroker) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    there, here = ("/no", "orders", [0]), (HERE, "orders", [0, 0])
    assert move(broker, here, there) == {("orders", 0): NOT_FOUND}
    assert move(broker, there, here) == {("orders", 0): 0}


def test_partition_without_a_local_replica_is_not_available(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE], isr=[GONE], leader=-1)
    assert move(broker, (HERE, "orders", [0])) == {("orders", 0): NOT_AVAILABLE}


def test_empty_request_gets_an_empty_reply(broker: SimulatedBroker) -> None:
    assert move(broker) == move(broker, ("/no", "orders", [])) == {}
