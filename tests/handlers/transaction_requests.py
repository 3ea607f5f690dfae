"""Requests of transactional producers, on a broker that has coordinators."""

from collections.abc import Mapping

from pykafka_core._core import VerifyTransaction
from pykafka_core.errors import NONE
from pykafka_core.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from tests.handlers.group_requests import broker_with_coordinator
from tests.handlers.offset_requests import TOPIC, create_topic, topic_id
from tests.support.simulated.broker import SimulatedBroker

ID = "transfers"
TIMEOUT_MS = 60_000
Producer = tuple[int, int]
"""Producer id and epoch."""


def transactional_broker(config: Mapping[str, str] | None = None) -> SimulatedBroker:
    """Return a broker with coordinators and a topic of three partitions."""
    broker = broker_with_coordinator(config)
    broker.ask(FindCoordinatorRequest(key=ID, key_type=1), 3)
    create_topic(broker)
    return broker


def init(
    broker: SimulatedBroker,
    name: str = ID,
    timeout_ms: int = TIMEOUT_MS,
    version: int = 5,
    producer: Producer = (-1, -1),
) -> tuple[int, Producer]:
    """Return the error code, and the producer id and epoch."""
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
    if producer != (-1, -1):
        request.producer_id, request.producer_epoch = producer
    response = broker.ask(request, version)
    assert isinstance(response, InitProducerIdResponse)
    return response.error_code, (response.producer_id, response.producer_epoch)


def producer_of(broker: SimulatedBroker, name: str = ID) -> Producer:
    code, producer = init(broker, name)
    assert code == NONE
    return producer


def add(
    broker: SimulatedBroker,
    producer: Producer,
    *partitions: int,
    topic: str = TOPIC,
    version: int = 3,
    verify_only: bool = False,
    name: str = ID,
) -> list[int]:
    """Add partitions; return error codes by partition."""
    named = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
        name=topic, partitions=list(partitions)
    )
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[named],
        )
    else:
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[named],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
    response = broker.ask(request, version)
    assert isinstance(response, AddPartitionsToTxnResponse)
    topics = (
        response.results_by_topic_v3_and_below
        if version < 4
        else response.results_by_transaction[0].topic_results
    )
    return [row.partition_error_code for row in topics[0].results_by_partition]


def add_offsets(broker: SimulatedBroker, producer: Producer, group: str = "g") -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], group_id=group
    )
    response = broker.ask(request)
    assert isinstance(response, AddOffsetsToTxnResponse)
    return response.error_code


def end(
    broker: SimulatedBroker, producer: Producer, *, commit: bool, version: int = 4
) -> tuple[int, Producer]:
    """Return the error code and, from version 5 on, the producer id and epoch from now on."""
    request = EndTxnRequest(
        transactional_id=ID,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
    response = broker.ask(request, version)
    assert isinstance(response, EndTxnResponse)
    return response.error_code, (response.producer_id, response.producer_epoch)


def commit_offsets(
    broker: SimulatedBroker,
    producer: Producer,
    offsets: dict[int, int],
    version: int = 4,
    topic: str = TOPIC,
    metadata: str = "m",
    **fields: object,
) -> list[int]:
    """Send a TxnOffsetCommit; return error codes by partition."""
    partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    rows = [
        partition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index, offset in offsets.items()
    ]
    request = TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=topic, topic_id=topic_id(broker, topic), partitions=rows
            )
        ],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    response = broker.ask(request, version)
    assert isinstance(response, TxnOffsetCommitResponse)
    return [row.error_code for row in response.topics[0].partitions]


def describe(
    broker: SimulatedBroker, name: str = ID
) -> DescribeTransactionsResponse.TransactionState:
    response = broker.ask(DescribeTransactionsRequest(transactional_ids=[name]))
    assert isinstance(response, DescribeTransactionsResponse)
    return response.transaction_states[0]


def verify(
    broker: SimulatedBroker,
    producer: Producer,
    *partitions: tuple[bytes, int],
    add_partitions: bool = False,
    name: str = ID,
) -> list[int]:
    """Return the result of the verification for a produce request."""
    broker.core.verdicts.clear()
    broker.core.push(
        VerifyTransaction(
            token=7,
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            partitions=list(partitions),
            add=add_partitions,
            received_ns=broker.core.clock_ns,
        )
    )
    broker.run()
    return broker.core.verdicts[7]
