"""One transactional id with its producer and its transaction: an immutable value, which operations
replace.
"""

from typing import NamedTuple, TypeAlias

from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.errors import InvalidProducerIdMappingError, ProducerFencedError

TV1 = 0
"""Stored for clients of the first version of the protocol; Kafka writes 0, never 1."""
TV2 = 2
"""The version in which each end of a transaction raises the producer's epoch (KIP-890)."""

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 32767
"""Only used by the marker that ends a producer id's last transaction; a client never has it."""
EXHAUSTED_EPOCH = EPOCH_MAX - 1
"""From this epoch on a producer gets a new id instead of a higher epoch."""
_TIMEOUT_OF_TWO_PHASE_COMMIT = 2**31 - 1

TopicPartition: TypeAlias = tuple[str, int]
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Transaction(NamedTuple):
    """State of a transactional id, like ``TransactionMetadata`` of Kafka.

    Args:
        transactional_id: The key of this entry.
        state: State of the transaction.
        producer_id: The client's id. When ``next_producer_id`` is set, it still is the id of the
            transaction.
        producer_epoch: The last epoch that was given out or fenced. Never decreases for the same
            producer id.
        last_producer_epoch: The client's previous epoch, while it may not know the new one; else
            -1. Not stored: after a load, InitProducerId with it is fenced, as by Kafka.
        previous_producer_id: The client's previous id, while it may not know the new one; else -1.
        next_producer_id: The client's id after the end of this transaction, if it changes; else -1.
        timeout_ms: Maximum time that a transaction may be open.
        partitions: Partitions that need markers.
        start_ms: Wall-clock time of the transaction's start; -1 if there was none since
            InitProducerId.
        last_update_ms: Wall-clock time of the last change.
        client_version: `TV1` or `TV2`: the protocol of the last change.
    """

    transactional_id: str
    state: TransactionState
    producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    previous_producer_id: int
    next_producer_id: int
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    client_version: int

    @property
    def is_exhausted(self) -> bool:
        """Return whether the producer id has no epoch left for a client."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    @property
    def has_timeout(self) -> bool:
        """Return whether it may be aborted because of its age.

        Two-phase commit has no timeout (KIP-939).
        """
        return 0 < self.timeout_ms < _TIMEOUT_OF_TWO_PHASE_COMMIT

    def check_producer(self, producer_id: int, producer_epoch: int) -> None:
        """Check that the client is the current producer of this id.

        Raises:
            InvalidProducerIdMappingError: The client has another producer id.
            ProducerFencedError: The client has another epoch, or the one that no client may have.
        """
        if producer_id != self.producer_id:
            raise InvalidProducerIdMappingError
        if producer_epoch != self.producer_epoch or producer_epoch == EPOCH_MAX:
            raise ProducerFencedError
