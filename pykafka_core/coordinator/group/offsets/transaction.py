"""TxnOffsetCommit, and the markers that apply its offsets (contract/kafka.md#23).

Theory of operation. The first commit of a transaction is accepted after the transaction coordinator
has confirmed that this partition belongs to the transaction. The transaction may end between that
verification and the commit; then the offsets would wait for a marker that never comes. Therefore
the verification runs under a `Guard`, which the marker of that transaction invalidates
(contract/replication.md#T6). The marker of the previous transaction, which may arrive late, does
not.

A group whose removed offsets lack tombstones accepts no offsets of transactions: a tombstone would
also remove such an offset, and without one the removed offset returns if the transaction aborts.
"""

from typing import NamedTuple

from pykafka_core.coordinator.group.offsets.commit import Commit, check_commit, without_deleted
from pykafka_core.coordinator.group.offsets.deletion import DELETION
from pykafka_core.coordinator.group.offsets.records import ensure_group
from pykafka_core.coordinator.group.offsets.transactions import Guard
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, TransactionEnd, Waiter, Within
from pykafka_core.errors import CoordinatorLoadInProgressError, InvalidTxnStateError


class TransactionalCommit(NamedTuple):
    """A commit within a producer's transaction."""

    commit: Commit
    producer_id: int
    producer_epoch: int


def begin_commit(
    asked: TransactionalCommit, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Commit if the transaction already has offsets here; else respond with a `Guard` for the
    verification.

    Raises:
        KafkaError: See `commit_in_transaction`.
    """
    open_epoch = state.transactions.epoch(asked.producer_id)
    if open_epoch == asked.producer_epoch:
        _commit(asked, state, waiter, result)
    else:
        result.respond(waiter, state.transactions.guard())


def commit_in_transaction(
    asked: TransactionalCommit,
    guard: Guard,
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Commit offsets that were verified under ``guard``; they wait for the marker.

    The response is the one of `commit_offsets`.

    Raises:
        InvalidTxnStateError: The producer's transaction has ended since the verification started.
        CoordinatorLoadInProgressError: It may have ended: the shard was loaded again, or too many
            others ended. Or removed offsets of the group lack tombstones. The client retries.
        KafkaError: The group rejects the commit; see `commit_offsets`.
        BatchFullError: The records do not fit into one batch.
    """
    if not state.transactions.knows(guard):
        raise CoordinatorLoadInProgressError
    if state.transactions.has_ended(guard, asked.producer_id, asked.producer_epoch):
        raise InvalidTxnStateError
    _commit(asked, state, waiter, result)


def end_transaction(
    end: TransactionEnd, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Write the marker, and apply or forget the producer's offsets; the response is None."""
    result.stamp = end
    state.transactions.end(end)
    state.offsets.end_transaction(end.producer_id, committed=end.committed)
    if state.offsets.detached:
        state.deadlines.set(DELETION, result.now_ns)
    result.respond(waiter, None)


def _commit(
    asked: TransactionalCommit, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    commit, deleted = without_deleted(asked.commit, state)
    check_commit(commit, state)
    if state.offsets.is_detached(commit.group_id):
        raise CoordinatorLoadInProgressError
    result.append([one.record for one in commit.offsets])
    result.stamp = Within(asked.producer_id, asked.producer_epoch)
    ensure_group(state, commit.group_id)
    for one in commit.offsets:
        place = (one.topic, one.partition)
        state.offsets.put_pending(asked.producer_id, commit.group_id, place, one.committed)
    state.transactions.begin(asked.producer_id, asked.producer_epoch)
    result.respond(waiter, deleted or None)
