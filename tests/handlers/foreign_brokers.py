"""Metadata of a larger cluster: partitions with replicas on other brokers that no longer run."""

from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite
from pykafka_core.metadata.image.image import Partition
from pykafka_core.protocol.messages import (
    HeartbeatResponse,
    Message,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.simulated.broker import SimulatedBroker

SELF = 1
GONE = 2
TOPIC_ID = bytes(15) + b"\7"
SELF_DIRECTORY = bytes(15) + b"\1"
GONE_DIRECTORY = bytes(15) + b"\2"


def commit(broker: SimulatedBroker, *records: Message) -> None:
    """Add these records to the metadata log."""

    def decide(_context: Context) -> MetadataWrite:
        return MetadataWrite(records, lambda _code: HeartbeatResponse())

    broker.dispatcher.ask(LocalRequest(decide))
    broker.run()


def register_gone(broker: SimulatedBroker) -> None:
    """Add a broker that is registered and fenced."""
    record = RegisterBrokerRecord(
        broker_id=GONE,
        incarnation_id=bytes(15) + b"\3",
        broker_epoch=1,
        end_points=[],
        features=[],
        fenced=True,
        log_dirs=[GONE_DIRECTORY],
    )
    commit(broker, record)


def make_orders(broker: SimulatedBroker, replicas: list[int], isr: list[int], leader: int) -> None:
    """Add a topic ``orders`` with one partition."""
    directories = {SELF: SELF_DIRECTORY, GONE: GONE_DIRECTORY}
    commit(
        broker,
        TopicRecord(name="orders", topic_id=TOPIC_ID),
        PartitionRecord(
            topic_id=TOPIC_ID,
            partition_id=0,
            replicas=replicas,
            isr=isr,
            leader=leader,
            leader_epoch=4,
            directories=[directories[node] for node in replicas],
        ),
    )


def orders(broker: SimulatedBroker) -> Partition:
    """Return the committed state of the partition."""
    return broker.image.topics.by_id[TOPIC_ID].partitions[0]
