"""What a turn of the transaction coordinator has the runtime do once it is committed."""

from typing import NamedTuple

from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    EPOCH_MAX,
    TV1,
    TopicPartition,
    Transaction,
)


class WriteMarkers(NamedTuple):
    """Write a transaction's markers to all of its partitions, and tell `markers_written` when all are there.

    Args:
        transactional_id: With producer id and epoch, what `markers_written` is told.
        producer_id: Of the transaction.
        producer_epoch: Of the markers: with `TV2` one higher than that of the transaction's records.
        committed: Or aborted.
        partitions: There may be none.
        transaction_version: By which rule partitions judge the epoch (`TransactionEnd`).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


def markers_of(prepared: Transaction) -> WriteMarkers:
    """The markers of a transaction that is decided."""
    # Kafka 4.2 may have stored a transaction with the highest epoch. Its marker cannot have a higher one, as the rule
    # of TV2 wants it; that of TV1 takes an equal one.
    is_last = prepared.producer_epoch == EPOCH_MAX
    return WriteMarkers(
        prepared.transactional_id,
        prepared.producer_id,
        prepared.producer_epoch,
        prepared.state is TransactionState.PREPARE_COMMIT,
        prepared.partitions,
        TV1 if is_last else prepared.client_version,
    )
