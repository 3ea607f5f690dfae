"""One transactional id with its producer and its transaction: a value. Operations put another in its place."""

from typing import NamedTuple, TypeAlias

from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.errors import InvalidProducerIdMappingError, ProducerFencedError

TV1 = 0
"""How Kafka stores that a client speaks the first version of the protocol; it writes 0, never 1."""
TV2 = 2
"""The version in which each end of a transaction raises the producer's epoch (KIP-890)."""

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 32767
"""Only ever reached by the marker that ends a producer id's last transaction: no client may have it."""
EXHAUSTED_EPOCH = EPOCH_MAX - 1
"""From here on a producer gets a new id instead of a higher epoch."""
_TIMEOUT_OF_TWO_PHASE_COMMIT = 2**31 - 1

TopicPartition: TypeAlias = tuple[str, int]
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Transaction(NamedTuple):
    """As ``TransactionMetadata`` of Kafka.

    Args:
        transactional_id: Whose it is.
        state: What it is in.
        producer_id: The id that the client has, but for a moment when ``next_producer_id`` is set.
        producer_epoch: The last one that was given out or fenced. Never goes back while the producer id stays.
        last_producer_epoch: What the client had before, while it may not know the new one; else -1. Not stored: after
            a load, InitProducerId with it is fenced, as by Kafka.
        previous_producer_id: What the client had before, while it may not know the new one; else -1.
        next_producer_id: What the client gets with the end of this transaction; else -1.
        timeout_ms: How long a transaction may be open.
        partitions: Where markers are to be written.
        start_ms: When the transaction began; -1 without any since InitProducerId. Wall clock.
        last_update_ms: When anything happened. Wall clock.
        client_version: `TV1` or `TV2`: by which protocol it was last changed.
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
        """Whether the producer id has no epoch left for a client."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    @property
    def has_timeout(self) -> bool:
        """Whether it may be aborted for its age. Those of two-phase commit may not (KIP-939)."""
        return 0 < self.timeout_ms < _TIMEOUT_OF_TWO_PHASE_COMMIT

    def check_producer(self, producer_id: int, producer_epoch: int) -> None:
        """Check that the client is the one that has this id now.

        Raises:
            InvalidProducerIdMappingError: It has another producer id.
            ProducerFencedError: It has another epoch, or the one that no client may have.
        """
        if producer_id != self.producer_id:
            raise InvalidProducerIdMappingError
        if producer_epoch != self.producer_epoch or producer_epoch == EPOCH_MAX:
            raise ProducerFencedError
