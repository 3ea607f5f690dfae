"""The transaction coordinator's shard: implements `pykafka_core.coordinator.shard.Shard`."""

from collections.abc import Mapping
from itertools import islice

from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.coordinator.transaction.effects import markers_of
from pykafka_core.coordinator.transaction.records import (
    KIND,
    read_transaction,
    read_transactional_id,
)
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.timers.expiry import arm_expiry, expire
from pykafka_core.coordinator.transaction.timers.keys import EXPIRY, Timeout
from pykafka_core.coordinator.transaction.timers.timeouts import abort_timed_out, arm_timeouts


class TransactionShard(Transactions):
    """The transactional ids of one partition."""

    __slots__ = ()

    def replay(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Apply a stored record; records of unknown kinds are skipped.

        Raises:
            ProtocolError: The bytes are not such a record.
            ValueError: A transaction is never stored in this state.
        """
        if int.from_bytes(key[:2], "big", signed=True) != KIND:
            return
        transactional_id = read_transactional_id(key)
        if value is None:
            self.remove(transactional_id)
        else:
            self.put(read_transaction(transactional_id, value))

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Do nothing: transactions never write to `__transaction_state`."""

    def loaded(self, result: CoordinatorResult) -> None:
        """Schedule all markers of prepared transactions, because it is unknown which are written,
        and set the deadlines.
        """
        for transaction in self.by_id.values():
            if transaction.state.is_prepared:
                result.then(markers_of(transaction))
        arm_timeouts(self, result)
        arm_expiry(self, result)

    def run_due(self, result: CoordinatorResult) -> None:
        """Run the first deadline that has passed, if any."""
        for key in islice(self.deadlines.take_due(result.due_ns), 1):
            if key == EXPIRY:
                expire(self, result)
            else:
                assert isinstance(key, Timeout), "expiry or the timeout of a transaction"
                abort_timed_out(key, self, result)

    def topics_deleted(self, topics: Mapping[str, bytes], result: CoordinatorResult) -> None:
        """Do nothing: the writer of markers skips partitions that do not exist."""
