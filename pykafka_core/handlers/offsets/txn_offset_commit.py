"""TxnOffsetCommit (28): a transaction commits a group's offsets, which take effect with the commit
of the transaction.

The group's shard accepts them at once if the transaction already has offsets there. Else the
transaction's coordinator gets a query first: up to version 4 it verifies that the group's partition
is part of the transaction, from version 5 on it adds the partition (KIP-890).
"""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.group.offsets.commit import NO_RETENTION, Commit, StoredOffset
from pykafka_core.coordinator.group.offsets.transaction import (
    TransactionalCommit,
    begin_commit,
    commit_in_transaction,
)
from pykafka_core.coordinator.group.offsets.transactions import Guard
from pykafka_core.errors import (
    NONE,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    NetworkError,
    ProducerFencedError,
    StaleMemberEpochError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import shard_of
from pykafka_core.handlers.offsets.judged_offsets import JudgedOffsets, TopicLookup
from pykafka_core.handlers.outcome import (
    GroupOperation,
    Reply,
    ShardCalls,
    ShardResult,
    TransactionQuery,
    Work,
)
from pykafka_core.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from pykafka_core.types import GROUP_TOPIC

ADDS_VERSION = 5
"""From this version on the commit adds the group's partition to the transaction."""
IDS_VERSION = 6
"""From this version on a request identifies topics by their ids, and a stale member epoch has its
own error."""
ABORTABLE_VERSION = 4
"""From this version on clients understand TRANSACTION_ABORTABLE."""

_TopicRow = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Row = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def handle(
    context: Context, request: TxnOffsetCommitRequest
) -> Work[ShardCalls | TxnOffsetCommitResponse]:
    """Commit all valid offsets or none; each partition has a result."""
    lookup = TopicLookup(context.image.topics, context.caller.api_version >= IDS_VERSION)
    judged = JudgedOffsets(request.group_id, NO_RETENTION, context.now_ms, lookup)
    topics = yield from judged.judge(context, request.topics, _TopicRow, _Row)
    if not judged.asked:
        return TxnOffsetCommitResponse(topics=topics)

    def refused(code: int) -> Work[TxnOffsetCommitResponse]:
        return committed([ShardResult(code)])

    def committed(results: Sequence[ShardResult]) -> Work[TxnOffsetCommitResponse]:
        (result,) = results
        is_stale = result.error_code == StaleMemberEpochError.code
        if is_stale and context.caller.api_version < IDS_VERSION:
            result = ShardResult(IllegalGenerationError.code)
        yield from judged.settle(result)
        return TxnOffsetCommitResponse(topics=topics)

    if not request.group_id:
        return (yield from refused(InvalidGroupIdError.code))
    shard = shard_of(context, GROUP_TOPIC, request.group_id)
    if shard is None:
        return (yield from refused(CoordinatorNotAvailableError.code))
    asked = TransactionalCommit(
        _commit(request, judged.offsets), request.producer_id, request.producer_epoch
    )

    def begun(results: Sequence[ShardResult]) -> Reply:
        guard = results[0].value
        if not isinstance(guard, Guard):
            return committed(results)
        return ShardCalls([_question(context, request, shard)], partial(verified, guard))

    def verified(guard: Guard, results: Sequence[ShardResult]) -> Reply:
        (result,) = results
        codes = result.value if isinstance(result.value, dict) else {}
        code = result.error_code or codes.get((GROUP_TOPIC, shard), NONE)
        if code:
            return refused(_client_code(context, code))
        run = partial(commit_in_transaction, asked, guard)
        return ShardCalls([GroupOperation(shard, run)], committed)

    return ShardCalls([GroupOperation(shard, partial(begin_commit, asked))], begun)


def _question(context: Context, request: TxnOffsetCommitRequest, shard: int) -> TransactionQuery:
    return TransactionQuery(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(GROUP_TOPIC, shard)],
        add=context.caller.api_version >= ADDS_VERSION,
    )


def _client_code(context: Context, code: int) -> int:
    """Convert an error code of the transaction coordinator to the one for clients, like
    ``AddPartitionsToTxnManager``.

    If the coordinator did not respond, the client gets COORDINATOR_LOAD_IN_PROGRESS: it retries
    without another FindCoordinator.
    """
    if code == ProducerFencedError.code:
        return InvalidProducerEpochError.code
    if code == NetworkError.code:
        return CoordinatorLoadInProgressError.code
    if code == UnknownTopicOrPartitionError.code:
        return CoordinatorNotAvailableError.code
    is_old = context.caller.api_version < ABORTABLE_VERSION
    is_abortable = code == TransactionAbortableError.code
    return InvalidTxnStateError.code if is_old and is_abortable else code


def _commit(request: TxnOffsetCommitRequest, offsets: Sequence[StoredOffset]) -> Commit:
    return Commit(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        offsets=offsets,
        api_version=None,
    )
