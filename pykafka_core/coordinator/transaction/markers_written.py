"""Completes a transaction when all its markers are written."""

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.prepare import completed
from pykafka_core.coordinator.transaction.state import Transactions


def markers_written(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    state: Transactions,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Complete a prepared transaction; the response is None.

    Ignored if the transaction does not wait for these markers.

    Args:
        producer_id: From the `WriteMarkers`.
        producer_epoch: From the `WriteMarkers`.
    """
    transaction = state.by_id.get(transactional_id)
    if (
        transaction is not None
        and transaction.state.is_prepared
        and (transaction.producer_id, transaction.producer_epoch) == (producer_id, producer_epoch)
    ):
        state.store(completed(transaction, result.now_ms), result)
    result.respond(waiter, None)
