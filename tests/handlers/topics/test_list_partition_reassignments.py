"""ListPartitionReassignments: KIP-455."""

from pykafka_core.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionChangeRecord,
)
from tests.handlers.foreign_brokers import GONE, SELF, TOPIC_ID, commit, make_orders, register_gone
from tests.support.simulated.broker import SimulatedBroker

Asked = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
Ongoing = tuple[str, int, list[int], list[int], list[int]]


def listed(broker: SimulatedBroker, topics: list[Asked] | None) -> list[Ongoing]:
    response = broker.ask(ListPartitionReassignmentsRequest(timeout_ms=0, topics=topics))
    assert isinstance(response, ListPartitionReassignmentsResponse)
    assert (response.error_code, response.error_message) == (0, None)
    return [
        (topic.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_without_a_reassignment_the_list_is_empty(broker: SimulatedBroker) -> None:
    make_orders(broker, replicas=[SELF], isr=[SELF], leader=SELF)
    asked = [
        Asked(name="orders", partition_indexes=[0, 9]),
        Asked(name="no", partition_indexes=[0]),
    ]
    for topics in (None, [], asked):
        assert listed(broker, topics) == []


def test_reassignment_waiting_for_a_broker_is_listed(broker: SimulatedBroker) -> None:
    register_gone(broker)
    make_orders(broker, replicas=[SELF, GONE], isr=[SELF], leader=SELF)
    commit(
        broker,
        PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, adding_replicas=[GONE]),
    )
    ongoing: Ongoing = ("orders", 0, [SELF, GONE], [GONE], [])
    assert listed(broker, None) == [ongoing]
    assert listed(broker, [Asked(name="orders", partition_indexes=[0, 1])]) == [ongoing]
    assert listed(broker, [Asked(name="orders", partition_indexes=[1])]) == []
