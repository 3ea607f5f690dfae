"""Markers of partitions that other nodes lead: sent in batches, and retried at the current leader
until all are written.
"""

from typing import cast

from pykafka_core.broker.runtime.interbroker.marker_batch import WRITE_TXN_MARKERS
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.metadata.image.image import Partition
from pykafka_core.protocol import decode_request, encode_message
from pykafka_core.protocol.messages import (
    EndTxnRequest,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykafka_core.types import TRANSACTION_TOPIC
from tests.handlers.foreign_brokers import commit
from tests.handlers.group_requests import pass_ms
from tests.handlers.transaction_requests import (
    ID,
    Producer,
    add,
    describe,
    producer_of,
    transactional_broker,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import Peer, Sent

PAYMENTS = bytes(15) + b"\x77"
NETWORK, FENCED, NOT_LEADER, OLD_EPOCH, STORAGE = 13, 52, 6, 47, 56


def peer(node_id: int) -> Peer:
    return WRITE_TXN_MARKERS.purpose, f"node-{node_id}", 9092


class World:
    """A coordinator in a cluster: nodes 2 and 3 lead partitions 0 and 1 of ``payments``, this node
    leads partition 2.
    """

    def __init__(self) -> None:
        self.broker: SimulatedBroker = transactional_broker()
        for node_id in (2, 3):
            self.broker.core.peers.add(peer(node_id))
            end_point = RegisterBrokerRecord.BrokerEndpoint(
                name="PLAINTEXT", host=f"node-{node_id}", port=9092
            )
            record = RegisterBrokerRecord(
                broker_id=node_id, incarnation_id=bytes(16), end_points=[end_point], fenced=False
            )
            commit(self.broker, record)
        own = self.broker.identity.node_id
        commit(
            self.broker,
            TopicRecord(name="payments", topic_id=PAYMENTS),
            *(self._led(index, leader) for index, leader in enumerate((2, 3, own))),
        )

    def _led(self, index: int, leader: int) -> PartitionRecord:
        return PartitionRecord(
            topic_id=PAYMENTS,
            partition_id=index,
            replicas=[leader],
            isr=[leader],
            leader=leader,
            leader_epoch=0,
        )

    def lead(self, topic_id: bytes, index: int, leader: int) -> None:
        """Make another node the leader, in the next epoch."""
        change = PartitionChangeRecord(
            topic_id=topic_id, partition_id=index, replicas=[leader], isr=[leader], leader=leader
        )
        commit(self.broker, change)

    def begin(self, *partitions: int, name: str = ID) -> Producer:
        producer = producer_of(self.broker, name)
        codes = add(self.broker, producer, *partitions, topic="payments", name=name)
        assert set(codes) == {0}
        return producer

    def end(self, producer: Producer, name: str = ID) -> None:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=True,
        )
        self.broker.send(request, 4)
        self.broker.run()

    def sent(self) -> list[tuple[Sent, WriteTxnMarkersRequest]]:
        """Return the requests in flight, in the order in which they were sent."""
        return [
            (sent, cast("WriteTxnMarkersRequest", decode_request(27, 2, bytes(sent.body))))
            for sent in self.broker.core.sent.values()
        ]

    def respond(self, sent: Sent, code: int = 0) -> None:
        """Respond with the same code for all partitions."""
        asked = cast("WriteTxnMarkersRequest", decode_request(27, 2, bytes(sent.body)))
        of = WriteTxnMarkersResponse
        markers = [
            of.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    of.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            of.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=code
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in asked.markers
        ]
        body = bytes(encode_message(of(markers=markers), 2))
        self.broker.core.reply(sent.token, body)
        self.broker.run()

    def state(self, name: str = ID) -> str:
        return describe(self.broker, name).transaction_state

    def coordinates(self, name: str = ID) -> tuple[bytes, int, Partition]:
        topic = self.broker.image.topics.by_name[TRANSACTION_TOPIC]
        index = coordinator_partition(name, len(topic.partitions))
        return topic.topic_id, index, topic.partitions[index]


def test_each_leader_gets_its_markers_and_then_the_transaction_is_complete() -> None:
    world = World()
    world.end(world.begin(0, 1, 2))
    (to_2, asked_2), (to_3, asked_3) = world.sent()
    assert {to_2.peer, to_3.peer} == {peer(2), peer(3)}
    for asked in (asked_2, asked_3):
        (marker,) = asked.markers
        assert marker.transaction_result
        assert len(marker.topics[0].partition_indexes) == 1
    assert world.broker.core.logs[PAYMENTS, 2].end == 1
    world.respond(to_2)
    assert world.state() == "PrepareCommit"
    world.respond(to_3)
    assert world.state() == "CompleteCommit"


def test_transactions_that_end_during_a_request_share_the_next_one() -> None:
    world = World()
    producers = {f"{ID}-{number}": world.begin(0, name=f"{ID}-{number}") for number in range(4)}
    for name, producer in producers.items():
        world.end(producer, name)
    ((first, asked),) = world.sent()
    assert len(asked.markers) == 1
    world.respond(first)
    ((second, asked),) = world.sent()
    assert len(asked.markers) == 3
    world.respond(second)
    assert {world.state(name) for name in producers} == {"CompleteCommit"}


def test_new_leader_gets_the_markers_as_soon_as_it_is_known() -> None:
    """Without a check of the metadata, markers waited for the next retry, whose delay doubles."""
    world = World()
    world.end(world.begin(0))
    world.broker.core.peers.discard(peer(2))
    ((sent, _),) = world.sent()
    world.respond(sent, NOT_LEADER)
    assert world.sent() == []
    pass_ms(world.broker, 1_000)
    assert world.state() == "PrepareCommit"
    world.lead(PAYMENTS, 0, 3)
    ((again, _),) = world.sent()
    assert again.peer == peer(3)
    world.respond(again)
    assert world.state() == "CompleteCommit"


def test_failed_markers_are_sent_to_the_same_leader_again() -> None:
    world = World()
    world.end(world.begin(0))
    for code in (STORAGE, 19, 7, 3):
        ((sent, _),) = world.sent()
        world.respond(sent, code)
        assert world.sent() == []
        pass_ms(world.broker, 2_000)
    ((sent, _),) = world.sent()
    world.broker.core.disconnect(peer(2))
    world.broker.run()
    pass_ms(world.broker, 2_000)
    ((sent, _),) = world.sent()
    world.respond(sent)
    assert world.state() == "CompleteCommit"


def test_a_fenced_coordinator_writes_no_further_marker() -> None:
    world = World()
    world.end(world.begin(0))
    ((sent, _),) = world.sent()
    world.respond(sent, FENCED)
    pass_ms(world.broker, 10_000)
    assert world.sent() == []
    assert world.state() == "PrepareCommit"


def test_newer_producer_in_one_partition_does_not_block_the_others() -> None:
    world = World()
    world.end(world.begin(0, 1))
    (first, _), (second, _) = world.sent()
    world.respond(first, OLD_EPOCH)
    world.respond(second)
    assert world.state() == "CompleteCommit"


def test_coordinator_that_no_longer_leads_writes_no_further_marker() -> None:
    """Its pending markers are dropped: the next coordinator ends the transaction, and may already
    have started another one.
    """
    world = World()
    producer = world.begin(0)
    other = world.begin(0, name="other")
    world.end(producer)
    world.end(other, "other")
    topic_id, index, partition = world.coordinates("other")
    assert index != world.coordinates()[1]
    world.lead(topic_id, index, 3)
    ((sent, _),) = world.sent()
    world.respond(sent)
    assert world.sent() == []
    assert world.state() == "CompleteCommit"
    own = world.broker.identity.node_id
    assert partition.leader == own
    world.lead(topic_id, index, own)
    world.broker.run()
    ((sent, asked),) = world.sent()
    assert asked.markers[0].coordinator_epoch == partition.leader_epoch + 2
    world.respond(sent)
    assert world.state("other") == "CompleteCommit"
