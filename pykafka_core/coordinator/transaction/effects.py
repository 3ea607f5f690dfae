"""Actions of the runtime after a turn of the transaction coordinator is committed."""

from typing import NamedTuple

from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    EPOCH_MAX,
    TV1,
    TopicPartition,
    Transaction,
)


class WriteMarkers(NamedTuple):
    """Write the markers of a transaction to all its partitions, and call `markers_written` when all
    are written.

    Args:
        transactional_id: Passed to `markers_written`, with producer id and epoch.
        producer_id: Producer id of the transaction.
        producer_epoch: Epoch of the markers: with `TV2` one higher than that of the transaction's
            records.
        committed: False if aborted.
        partitions: May be empty.
        transaction_version: Selects the rule by which partitions check the epoch
            (`TransactionEnd`).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


def markers_of(prepared: Transaction) -> WriteMarkers:
    """Return the markers of a prepared transaction."""
    # Kafka 4.2 may have stored a transaction with the highest epoch. Its marker cannot have a
    # higher one, which TV2 requires; TV1 accepts an equal one.
    is_last = prepared.producer_epoch == EPOCH_MAX
    return WriteMarkers(
        prepared.transactional_id,
        prepared.producer_id,
        prepared.producer_epoch,
        prepared.state is TransactionState.PREPARE_COMMIT,
        prepared.partitions,
        TV1 if is_last else prepared.client_version,
    )
