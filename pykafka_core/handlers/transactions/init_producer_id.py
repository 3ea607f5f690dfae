"""InitProducerId (22): KIP-98, KIP-360. The ids come from blocks that ProducerIdsRecords assign to
this broker.
"""

from collections.abc import Callable
from functools import partial

from pykafka_core.coordinator.transaction.init_producer_id import (
    InitProducerId,
    init_producer_id,
)
from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import coordinate_transaction, response_of
from pykafka_core.handlers.outcome import MetadataWrite, ShardCalls, ShardResult
from pykafka_core.handlers.transactions.fencing import known_to
from pykafka_core.metadata.producer_ids import next_block
from pykafka_core.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    Message,
)

FENCED_VERSION = 4
NOT_GIVEN = -1

_Next = Message | ShardCalls


def handle(context: Context, request: InitProducerIdRequest) -> MetadataWrite | _Next:
    """Return a new id with epoch 0 to a producer without a transactional id; for others, the
    coordinator decides.

    The coordinator may need a new id too, so one is made available before its operation runs.
    """
    code = _refusal(context, request)
    if code:
        return _failed(code)
    if request.transactional_id is None:
        return _with_new_id(context, _given)
    if context.producer_ids:
        return _transactional(context, request, request.transactional_id)
    transactional_id = request.transactional_id
    return _with_new_id(context, lambda _: _transactional(context, request, transactional_id))


def _refusal(context: Context, request: InitProducerIdRequest) -> int:
    """Return the error code of the checks that Kafka makes before its coordinator
    (contract/kafka.md#18); 0 if there is none.
    """
    if (request.producer_id == NOT_GIVEN) != (request.producer_epoch == NOT_GIVEN):
        return InvalidRequestError.code
    if request.transactional_id is None:
        return 0
    if not request.transactional_id:
        return InvalidRequestError.code
    timeout_ms_max = context.settings.int("transaction.max.timeout.ms")
    is_valid = 0 < request.transaction_timeout_ms <= timeout_ms_max
    return 0 if is_valid else InvalidTransactionTimeoutError.code


def _with_new_id(context: Context, reply: Callable[[int], _Next]) -> MetadataWrite | _Next:
    """Call ``reply`` with a new id; if there is none, propose a block of ids first."""
    producer_id = context.producer_ids.take()
    if producer_id is not None:
        return reply(producer_id)

    def unless(producer_id: int, code: int) -> _Next:
        return _failed(CoordinatorNotAvailableError.code) if code else reply(producer_id)

    first = context.image.next_producer_id
    proposed = context.producer_ids.take_proposed(first)
    if proposed is not None:
        return MetadataWrite([], partial(unless, proposed))
    record = next_block(context.image, context.node.node_id, context.broker_epoch)
    if record is None:
        return _failed(-1)
    end = record.next_producer_id
    context.producer_ids.propose(first, end)

    def settled(code: int) -> _Next:
        context.producer_ids.settle(end, committed=not code)
        return unless(first, code)

    return MetadataWrite([record], settled)


def _transactional(
    context: Context, request: InitProducerIdRequest, transactional_id: str
) -> _Next:
    asked = InitProducerId(
        transactional_id,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
    )

    def refused(code: int) -> InitProducerIdResponse:
        return _failed(known_to(context, code, FENCED_VERSION))

    def reply(result: ShardResult) -> Message:
        response = response_of(result, refused)
        assert isinstance(response, InitProducerIdResponse), "a shard answers with this response"
        response.error_code = known_to(context, response.error_code, FENCED_VERSION)
        return response

    run = partial(init_producer_id, asked)
    return coordinate_transaction(context, transactional_id, run, reply)


def _given(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failed(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
