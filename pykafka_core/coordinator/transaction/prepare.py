"""The decision of a transaction, and its state when its markers are written."""

from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.coordinator.transaction.effects import markers_of
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    EPOCH_MAX,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    TV1,
    TV2,
    Transaction,
)


def prepare(
    transaction: Transaction,
    state: Transactions,
    result: CoordinatorResult,
    *,
    commit: bool,
    version: int,
) -> Transaction:
    """Decide a transaction, and schedule its markers for after the commit; return it as it will be
    when they are written.

    `TV2` raises the epoch. If no epoch is left for the client, it gets a new producer id with the
    end of the transaction; the markers have the highest epoch, which a client never has.

    Raises:
        CoordinatorLoadInProgressError: A new producer id is needed, and none is available.
        BatchFullError: The record does not fit into one batch.
    """
    epoch, last_epoch = transaction.producer_epoch, transaction.last_producer_epoch
    next_id = NO_PRODUCER_ID
    if version >= TV2:
        next_id = state.take_producer_id() if transaction.is_exhausted else NO_PRODUCER_ID
        epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
    is_open = transaction.state is TransactionState.ONGOING
    prepared = transaction._replace(
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        previous_producer_id=NO_PRODUCER_ID,
        next_producer_id=next_id,
        start_ms=transaction.start_ms if is_open else result.now_ms,
        last_update_ms=result.now_ms,
        client_version=version if version >= TV2 else TV1,
    )
    state.store(prepared, result)
    result.then(markers_of(prepared))
    return completed(prepared, result.now_ms)


def fence(transaction: Transaction, state: Transactions, result: CoordinatorResult) -> None:
    """Abort an open transaction with a new epoch, whatever protocol version its client uses.

    Raises:
        CoordinatorLoadInProgressError: A new producer id is needed, and none is available.
        BatchFullError: The record does not fit into one batch.
    """
    prepare(transaction, state, result, commit=False, version=TV2)


def completed(prepared: Transaction, now_ms: int) -> Transaction:
    """Return a prepared transaction as it is when all its markers are written."""
    is_commit = prepared.state is TransactionState.PREPARE_COMMIT
    complete = prepared._replace(
        state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
        previous_producer_id=NO_PRODUCER_ID,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        last_update_ms=now_ms,
    )
    if prepared.next_producer_id == NO_PRODUCER_ID:
        return complete
    return complete._replace(
        producer_id=prepared.next_producer_id,
        producer_epoch=0,
        previous_producer_id=prepared.producer_id,
    )
