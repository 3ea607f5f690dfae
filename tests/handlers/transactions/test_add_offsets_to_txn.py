"""AddOffsetsToTxn: the partition that coordinates the group becomes part of the transaction."""

from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.protocol.messages import FindCoordinatorRequest
from tests.handlers.transaction_requests import (
    ID,
    add_offsets,
    describe,
    end,
    producer_of,
    transactional_broker,
)
from tests.support.simulated.broker import SimulatedBroker


def test_partition_of_the_group_is_added() -> None:
    broker = transactional_broker()
    assert add_offsets(broker, producer_of(broker)) == 0
    (topic,) = describe(broker).topics
    assert (topic.topic, topic.partitions) == (
        "__consumer_offsets",
        [coordinator_partition("g", 50)],
    )


def test_partition_is_added_before_the_group_coordinator_is_looked_up() -> None:
    broker = SimulatedBroker()
    broker.ask(FindCoordinatorRequest(key=ID, key_type=1), 3)
    producer = producer_of(broker)
    assert add_offsets(broker, producer) == 0
    assert end(broker, producer, commit=True)[0] == 0
    assert describe(broker).transaction_state == "CompleteCommit"


def test_an_older_producer_is_fenced() -> None:
    broker = transactional_broker()
    old = producer_of(broker)
    producer_of(broker)
    assert add_offsets(broker, old) == 90
