"""EndTxn (26): a producer commits or aborts its transaction."""

from functools import partial

from pykafka_core.coordinator.transaction.end_transaction import end_transaction
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import coordinate_transaction, response_of
from pykafka_core.handlers.outcome import ShardCalls, ShardResult
from pykafka_core.handlers.transactions.fencing import known_to
from pykafka_core.protocol.messages import EndTxnRequest, EndTxnResponse, Message

FENCED_VERSION = 2
TV2_VERSION = 5


def handle(context: Context, request: EndTxnRequest) -> ShardCalls | Message:
    """Respond when the decision is stored; the markers are written later (contract/kafka.md#19)."""

    def refused(code: int) -> EndTxnResponse:
        return EndTxnResponse(error_code=known_to(context, code, FENCED_VERSION))

    def reply(result: ShardResult) -> Message:
        return response_of(result, refused)

    run = partial(
        end_transaction,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        TV2 if context.caller.api_version >= TV2_VERSION else TV1,
    )
    return coordinate_transaction(context, request.transactional_id, run, reply)
