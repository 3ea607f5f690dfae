"""State of a transaction coordinator's shard: the transactional ids of a `__transaction_state`
partition.
"""

from collections import deque
from collections.abc import Callable
from sys import getsizeof

from pykafka_core.coordinator.deadlines import Deadlines
from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.coordinator.transaction.records import transaction_record
from pykafka_core.coordinator.transaction.settings import TransactionSettings
from pykafka_core.coordinator.transaction.states import FOLLOWING, TransactionState
from pykafka_core.coordinator.transaction.timers.keys import Timeout
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.errors import (
    CoordinatorLoadInProgressError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    PolicyViolationError,
)
from pykafka_core.types import NS_PER_MS

BYTES_MAX = 16 * 1024 * 1024
"""Memory limit for all transactions of a shard: some 30,000 ids. Kafka has no limit; without one,
ids that are used once and expire after a week fill the memory."""
_ID_BYTES = 512
_PARTITION_BYTES = 128
_SPARE_BYTES = 128
"""Maximum bytes by which the record that ends a transaction is larger than the record that added
its last partition."""


class Transactions:
    """Data only; the operations are functions, with one file for each request.

    Args:
        settings: Settings of the coordinator.
        new_producer_id: Returns an unused producer id, or None while none is available.

    Attributes:
        by_id: By transactional id. Changed only by `store`, `put` and `remove`.
        bytes_used: Estimate of the memory of the transactions.
        deadlines: Deadlines, by keys of the module `keys`.
        to_search: Transactional ids that the search for expired ids has not visited.
    """

    __slots__ = (
        "by_id",
        "bytes_used",
        "deadlines",
        "new_producer_id",
        "settings",
        "to_search",
    )

    def __init__(
        self, settings: TransactionSettings, new_producer_id: Callable[[], int | None]
    ) -> None:
        self.settings = settings
        self.new_producer_id = new_producer_id
        self.by_id: dict[str, Transaction] = {}
        self.bytes_used = 0
        self.deadlines = Deadlines()
        self.to_search: deque[str] = deque()

    def known(self, transactional_id: str) -> Transaction:
        """Return the transaction of an id.

        Raises:
            InvalidRequestError: The id is empty.
            InvalidProducerIdMappingError: The id is unknown.
        """
        transaction = self.by_id.get(check_id(transactional_id))
        if transaction is None:
            raise InvalidProducerIdMappingError
        return transaction

    def take_producer_id(self) -> int:
        """Return a new producer id.

        Raises:
            CoordinatorLoadInProgressError: None is available yet; clients retry.
        """
        producer_id = self.new_producer_id()
        if producer_id is None:
            raise CoordinatorLoadInProgressError
        return producer_id

    def store(self, transaction: Transaction, result: CoordinatorResult) -> None:
        """Store a transaction; it replaces the previous one of its id.

        Raises:
            PolicyViolationError: It has so many partitions that its end could not be stored, or the
                shard is full.
            BatchFullError: The record does not fit into one batch.
        """
        old = self.by_id.get(transaction.transactional_id)
        assert old is None or transaction.state in FOLLOWING[old.state], "a transition of the table"
        self._check_memory(old, transaction)
        key, value = record = transaction_record(transaction)
        is_ongoing = transaction.state is TransactionState.ONGOING
        if is_ongoing and len(key) + len(value or b"") + _SPARE_BYTES > result.bytes_left:
            raise PolicyViolationError("the transaction has too many partitions")
        result.append([record])
        self.put(transaction)
        if not is_ongoing:
            self.deadlines.cancel(Timeout(transaction.transactional_id))
        elif old is None or old.state is not TransactionState.ONGOING:
            self.arm_timeout(transaction, result)

    def put(self, transaction: Transaction) -> None:
        """Add a stored transaction."""
        old = self.by_id.get(transaction.transactional_id)
        self.bytes_used += _bytes_of(transaction) - _bytes_of(old)
        self.by_id[transaction.transactional_id] = transaction

    def remove(self, transactional_id: str) -> None:
        """Forget an id whose tombstone is stored, if it is known."""
        self.bytes_used -= _bytes_of(self.by_id.pop(transactional_id, None))

    def arm_timeout(self, transaction: Transaction, result: CoordinatorResult) -> None:
        """Schedule the abort of an open transaction at its timeout."""
        if transaction.has_timeout:
            age_ms = result.now_ms - transaction.start_ms
            # Kafka aborts a transaction when its age exceeds its timeout, not when it is equal. A
            # clock that was set back never extends a timeout.
            left_ms = min(max(transaction.timeout_ms - age_ms, 0), transaction.timeout_ms) + 1
            key = Timeout(transaction.transactional_id)
            self.deadlines.set(key, result.now_ns + left_ms * NS_PER_MS)

    def _check_memory(self, old: Transaction | None, new: Transaction) -> None:
        growth = _bytes_of(new) - _bytes_of(old)
        if growth > 0 and self.bytes_used + growth > BYTES_MAX:
            raise PolicyViolationError("there are too many transactional ids")


def check_id(transactional_id: str) -> str:
    """Return the transactional id.

    Raises:
        InvalidRequestError: It is empty.
    """
    if not transactional_id:
        raise InvalidRequestError
    return transactional_id


def _bytes_of(transaction: Transaction | None) -> int:
    if transaction is None:
        return 0
    id_bytes = _ID_BYTES + getsizeof(transaction.transactional_id)
    return id_bytes + _PARTITION_BYTES * len(transaction.partitions)
