"""UnregisterBroker: KIP-631."""

import pytest

from pykafka_core.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.handlers.cluster_world import ClusterWorld
from tests.handlers.foreign_brokers import GONE, SELF, make_orders, orders, register_gone
from tests.support.simulated.broker import SimulatedBroker

INVALID_REQUEST, NOT_REGISTERED = 42, 102


def unregister(broker: SimulatedBroker, broker_id: int) -> tuple[int, str | None]:
    response = broker.ask(UnregisterBrokerRequest(broker_id=broker_id))
    assert isinstance(response, UnregisterBrokerResponse)
    return response.error_code, response.error_message


@pytest.mark.parametrize("broker_id", [77, -1, GONE])
def test_unregistered_broker_cannot_be_unregistered(
    broker: SimulatedBroker, broker_id: int
) -> None:
    text = f"Broker ID {broker_id} is not currently registered"
    assert unregister(broker, broker_id) == (NOT_REGISTERED, text)


def test_only_live_broker_cannot_be_unregistered(broker: SimulatedBroker) -> None:
    assert unregister(broker, SELF)[0] == INVALID_REQUEST
    assert SELF in broker.image.brokers


def test_stopped_broker_is_unregistered(broker: SimulatedBroker) -> None:
    register_gone(broker)
    assert unregister(broker, GONE) == (0, None)
    assert broker.image.brokers.keys() == {SELF}
    assert unregister(broker, GONE)[0] == NOT_REGISTERED


@pytest.mark.parametrize(
    ("replicas", "isr", "leader", "isr_after", "elr_after", "leader_after"),
    [
        ([SELF], [SELF], SELF, (SELF,), (), SELF),
        ([SELF, GONE], [SELF, GONE], SELF, (SELF,), (), SELF),
        ([GONE, SELF], [GONE, SELF], GONE, (SELF,), (), SELF),
        ([GONE, SELF], [GONE], GONE, (), (GONE,), -1),
        ([GONE], [GONE], -1, (), (GONE,), -1),
    ],
    ids=["no replica", "in sync", "leads", "leads alone", "alone"],
)
def test_unregistered_broker_leaves_every_isr_and_leads_nothing(
    broker: SimulatedBroker,
    replicas: list[int],
    isr: list[int],
    leader: int,
    isr_after: tuple[int, ...],
    elr_after: tuple[int, ...],
    leader_after: int,
) -> None:
    register_gone(broker)
    make_orders(broker, replicas=replicas, isr=isr, leader=leader)
    assert unregister(broker, GONE) == (0, None)
    left = orders(broker)
    assert (left.isr, left.elr, left.leader) == (isr_after, elr_after, leader_after)


def test_unregistered_broker_of_a_cluster_leaves_its_partitions_to_the_others() -> None:
    world = ClusterWorld([1, 2, 3])
    world.make_topic([1, 2, 3], [2, 1, 3], [1])
    world.ask(UnregisterBrokerRequest(broker_id=1))
    assert world.image.brokers.keys() == {2, 3}
    assert [world.partition(index).leader for index in range(3)] == [2, 2, -1]
    assert [world.partition(index).isr for index in range(3)] == [(2, 3), (2, 3), ()]
