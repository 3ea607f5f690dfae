"""InitProducerId (22): KIP-98. Ids come from blocks that ProducerIdsRecords make ours."""

from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    KafkaError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome, Propose
from pykafka_core.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducerIdsRecord,
)

BLOCK_SIZE = 1000
"""``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``; each start of a broker begins a new block."""
PRODUCER_ID_MAX = 2**63 - 1


def handle(context: Context, request: InitProducerIdRequest) -> Outcome:
    """Give a fresh id with epoch 0 to a producer without a transactional id.

    One with a transactional id needs the transaction coordinator, which is not built: it is told
    that the coordinator is not available, which clients take as a reason to wait.
    """
    if request.transactional_id is not None:
        return _failed(_refusal(context, request).code)
    producer_id = context.producer_ids.take()
    if producer_id is not None:
        return _given(producer_id)
    first = context.image.next_producer_id
    proposed = context.producer_ids.take_proposed(first)
    if proposed is not None:
        return Propose([], lambda code: _unless(code, proposed))
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        return _failed(-1)
    record = ProducerIdsRecord(
        broker_id=context.node.node_id,
        broker_epoch=context.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )

    context.producer_ids.propose(first, first + BLOCK_SIZE)

    def reply(code: int) -> InitProducerIdResponse:
        context.producer_ids.settle(first + BLOCK_SIZE, committed=not code)
        return _unless(code, first)

    return Propose([record], reply)


def _refusal(context: Context, request: InitProducerIdRequest) -> type[KafkaError]:
    """What Kafka checks before it asks the coordinator (contract/kafka.md#18), else that there is none."""
    if request.transactional_id == "":
        return InvalidRequestError
    timeout_ms_max = context.settings.int("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= timeout_ms_max:
        return InvalidTransactionTimeoutError
    return CoordinatorNotAvailableError


def _unless(code: int, producer_id: int) -> InitProducerIdResponse:
    return _failed(CoordinatorNotAvailableError.code) if code else _given(producer_id)


def _given(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failed(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
