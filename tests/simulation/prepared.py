"""What is there before a simulation begins: topics, in logs that are made once."""

from dataclasses import replace
from functools import cache
from typing import Any

from pykafka_core.protocol.messages import CreateTopicsRequest, FindCoordinatorRequest
from pykafka_core.testing.fake_core import PartitionId
from pykafka_core.testing.simulated_broker import SimulatedBroker
from tests.simulation.core import Door, SimulatedCore

TOPIC = "orders"
PARTITIONS = 3
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.consumer.session.timeout.ms": "45000",
}


def prepared_logs() -> tuple[dict[PartitionId, Any], int]:
    """Logs of a broker that has its topics, to be changed by the caller; and the next id."""
    logs, first_id = _prepared()
    return _copied(logs), first_id


@cache
def _prepared() -> tuple[dict[PartitionId, Any], int]:
    core = SimulatedCore(Door())
    broker = SimulatedBroker(SETTINGS, core)
    for key_type in (0, 1):
        broker.ask(FindCoordinatorRequest(key="", key_type=key_type), 3)
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=PARTITIONS, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]), 7)
    return core.logs, next(broker.ids)


def _copied(logs: dict[PartitionId, Any]) -> dict[PartitionId, Any]:
    return {
        partition: replace(log, batches=list(log.batches), producers=dict(log.producers))
        for partition, log in logs.items()
    }
