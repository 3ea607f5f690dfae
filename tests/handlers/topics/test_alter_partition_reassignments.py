"""AlterPartitionReassignments (KIP-455, KIP-860), with the error codes of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ConfigRecord,
    PartitionChangeRecord,
)
from pykafka_core.types import RESOURCE_TOPIC
from tests.handlers.foreign_brokers import (
    GONE,
    GONE_DIRECTORY,
    SELF,
    SELF_DIRECTORY,
    TOPIC_ID,
    commit,
    make_orders,
    orders,
    register_gone,
)
from tests.support.simulated.broker import SimulatedBroker

UNKNOWN, TIMED_OUT, INVALID_FACTOR, INVALID_ASSIGNMENT, NO_REASSIGNMENT = 3, 7, 38, 39, 85
Change = tuple[str, int, list[int] | None]


def ask(
    broker: SimulatedBroker,
    *changes: Change,
    version: int = 1,
    any_factor: bool = True,
    timeout_ms: int = 1000,
) -> AlterPartitionReassignmentsResponse:
    topics = [
        AlterPartitionReassignmentsRequest.ReassignableTopic(
            name=name,
            partitions=[
                AlterPartitionReassignmentsRequest.ReassignablePartition(
                    partition_index=index, replicas=replicas
                )
            ],
        )
        for name, index, replicas in changes
    ]
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms, allow_replication_factor_change=any_factor, topics=topics
    )
    response = broker.ask(request, version)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    return response


def results(response: AlterPartitionReassignmentsResponse) -> list[tuple[int, str | None]]:
    assert response.error_code == 0
    return [
        (partition.error_code, partition.error_message)
        for topic in response.responses
        for partition in topic.partitions
    ]


def codes(broker: SimulatedBroker, *changes: Change, any_factor: bool = True) -> list[int]:
    return [code for code, _ in results(ask(broker, *changes, any_factor=any_factor))]


@pytest.mark.parametrize("version", range(2))
def test_unchanged_assignment_is_not_written(broker: SimulatedBroker, version: int) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    before = orders(broker)
    assert results(ask(broker, ("orders", 0, [SELF]), version=version)) == [(0, None)]
    assert orders(broker) == before


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        ([], "The manual partition assignment includes an empty replica list."),
        ([77], "The manual partition assignment includes broker 77, but no such broker is registered."),
        ([-1], "The manual partition assignment includes broker -1, but no such broker is registered."),
        ([SELF, SELF], "The manual partition assignment includes the broker 1 more than once."),
        ([SELF, SELF, 77], "The manual partition assignment includes the broker 1 more than once."),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("any_factor", [True, False])
def test_invalid_assignment_is_rejected(
    broker: SimulatedBroker, replicas: list[int], text: str, any_factor: bool
) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    response = ask(broker, ("orders", 0, replicas), any_factor=any_factor)
    assert response.allow_replication_factor_change == any_factor
    assert results(response) == [(INVALID_ASSIGNMENT, text)]


def test_unknown_topics_and_partitions_are_reported(broker: SimulatedBroker) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    assert results(ask(broker, ("nobody", 0, None), ("orders", 9, [77]))) == [
        (UNKNOWN, "Unable to find a topic named nobody."),
        (UNKNOWN, "Unable to find partition orders:9."),
    ]


def test_cancelling_without_a_reassignment_fails(broker: SimulatedBroker) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    assert results(ask(broker, ("orders", 0, None))) == [(NO_REASSIGNMENT, None)]


def test_without_topics_the_message_is_empty(broker: SimulatedBroker) -> None:
    response = ask(broker, timeout_ms=0)
    assert (response.error_code, response.error_message, response.responses) == (0, "", [])


def test_expired_timeout_changes_nothing(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[SELF, GONE], isr=[SELF], leader=SELF)
    response = ask(broker, ("orders", 0, [SELF]), timeout_ms=0)
    assert response.error_code == TIMED_OUT
    assert [p.error_code for t in response.responses for p in t.partitions] == [TIMED_OUT]
    assert orders(broker).replicas == (SELF, GONE)


def test_removing_a_stopped_replica_starts_a_new_leader_epoch_at_once(
    broker: SimulatedBroker,
) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE, SELF], isr=[GONE, SELF], leader=SELF)
    assert codes(broker, ("orders", 0, [SELF])) == [0]
    left = orders(broker)
    assert (left.replicas, left.isr, left.directories) == ((SELF,), (SELF,), (SELF_DIRECTORY,))
    assert (left.leader, left.leader_epoch) == (SELF, 5)
    assert (left.removing, left.adding) == ((), ())


def test_another_replica_leads_when_the_leader_is_removed(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE, SELF], isr=[GONE, SELF], leader=GONE)
    assert codes(broker, ("orders", 0, [SELF])) == [0]
    assert (orders(broker).leader, orders(broker).leader_epoch) == (SELF, 5)


def test_change_of_the_replication_factor_can_be_forbidden(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE, SELF], isr=[SELF], leader=SELF)
    response = ask(broker, ("orders", 0, [SELF]), any_factor=False)
    assert results(response) == [(INVALID_FACTOR, "The replication factor is changed from 2 to 1")]
    assert codes(broker, ("orders", 0, [SELF, GONE]), any_factor=False) == [0]
    assert orders(broker).replicas == (SELF, GONE)


def test_reassignment_to_a_replica_that_cannot_catch_up_stays_until_cancelled(
    broker: SimulatedBroker,
) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    assert codes(broker, ("orders", 0, [GONE])) == [0]
    begun = orders(broker)
    assert (begun.replicas, begun.removing, begun.adding) == ((GONE, SELF), (SELF,), (GONE,))
    assert (begun.isr, begun.leader) == ((SELF,), SELF)
    assert begun.directories == (GONE_DIRECTORY, SELF_DIRECTORY)
    assert codes(broker, ("orders", 0, None)) == [0]
    ended = orders(broker)
    assert (ended.replicas, ended.removing, ended.adding) == ((SELF,), (), ())
    assert (ended.leader, ended.directories) == (SELF, (SELF_DIRECTORY,))


def test_last_change_of_a_partition_wins(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[SELF, GONE], isr=[SELF, GONE], leader=SELF)
    assert codes(broker, ("orders", 0, [GONE, SELF]), ("orders", 0, [SELF, GONE])) == [0, 0]
    assert orders(broker).replicas == (SELF, GONE)


@pytest.mark.parametrize(("unclean", "code"), [("false", INVALID_ASSIGNMENT), ("true", 0)])
def test_cancelling_to_out_of_sync_replicas_is_an_unclean_election(
    broker: SimulatedBroker, unclean: str, code: int
) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[GONE, SELF], isr=[SELF], leader=SELF)
    commit(
        broker,
        ConfigRecord(
            resource_type=RESOURCE_TOPIC,
            resource_name="orders",
            name="unclean.leader.election.enable",
            value=unclean,
        ),
    )
    _begin_adding_self(broker)
    assert codes(broker, ("orders", 0, None)) == [code]
    assert orders(broker).isr == ((SELF,) if code else (GONE,))
    assert orders(broker).leader == (SELF if code else -1)


def _begin_adding_self(broker: SimulatedBroker) -> None:
    commit(
        broker,
        PartitionChangeRecord(
            topic_id=TOPIC_ID, partition_id=0, adding_replicas=[SELF], removing_replicas=[GONE]
        ),
    )
