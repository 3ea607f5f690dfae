"""The initial state of a simulation: topics, in logs that are made once."""

from dataclasses import replace
from functools import cache
from typing import Any

from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.transaction.records import transaction_record
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import EXHAUSTED_EPOCH, Transaction
from pykafka_core.protocol.messages import CreateTopicsRequest, FindCoordinatorRequest
from pykafka_core.types import TRANSACTION_TOPIC, PartitionId
from tests.simulation.core import Door, SimulatedCore
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore, encode_batch

TOPIC = "orders"
PARTITIONS = 3
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.consumer.session.timeout.ms": "45000",
}
OLD_PRODUCER_ID = 5_000_000


def prepared_logs() -> tuple[dict[PartitionId, Any], int]:
    """Return copies of the logs of a broker with its topics, and the next id."""
    logs, first_id, _ = _prepared()
    return _copied(logs), first_id


def exhaust(logs: dict[PartitionId, Any], transactional_id: str, epochs_left: int) -> None:
    """Give a transactional id a producer id with few remaining epochs."""
    topic_id = _prepared()[2]
    count = sum(partition[0] == topic_id for partition in logs)
    log = logs[topic_id, coordinator_partition(transactional_id, count)]
    record = transaction_record(
        Transaction(
            transactional_id,
            TransactionState.EMPTY,
            producer_id=OLD_PRODUCER_ID,
            producer_epoch=EXHAUSTED_EPOCH - epochs_left,
            last_producer_epoch=-1,
            previous_producer_id=-1,
            next_producer_id=-1,
            timeout_ms=2_000,
            partitions=frozenset(),
            start_ms=-1,
            last_update_ms=FakeCore().clock_ms,
            client_version=0,
        )
    )
    data = encode_batch(log.end, log.leader_epoch, FakeCore().clock_ms, [record], False)
    log.batches.append((log.end, log.end + 1, data))
    log.end = log.high_watermark = log.end + 1


@cache
def _prepared() -> tuple[dict[PartitionId, Any], int, bytes]:
    core = SimulatedCore(Door())
    broker = SimulatedBroker(SETTINGS, core)
    for key_type in (0, 1):
        broker.ask(FindCoordinatorRequest(key="", key_type=key_type), 3)
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=PARTITIONS, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]), 7)
    transactions = broker.image.topics.by_name[TRANSACTION_TOPIC]
    return core.logs, next(broker.ids), transactions.topic_id


def _copied(logs: dict[PartitionId, Any]) -> dict[PartitionId, Any]:
    return {
        partition: replace(log, batches=list(log.batches), producers=dict(log.producers))
        for partition, log in logs.items()
    }
