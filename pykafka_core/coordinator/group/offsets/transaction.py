"""TxnOffsetCommit, and the markers that make its offsets count (contract/kafka.md#23).

Theory of operation. The first commit of a transaction is taken when the transaction's coordinator has said that this
partition is part of it. Between the question and the commit the transaction may end, and the offsets would
wait for a marker that never comes. So the question is asked under a `Guard`, which the marker of that transaction ends
(contract/replication.md#T6). The marker of the one before, which may still be on its way, does not.
"""

from typing import NamedTuple

from pykafka_core.coordinator.group.offsets.commit import Commit, check_commit
from pykafka_core.coordinator.group.offsets.records import ensure_group
from pykafka_core.coordinator.group.offsets.transactions import Guard
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import TransactionEnd, Turn, Waiter, Within
from pykafka_core.errors import CoordinatorLoadInProgressError, InvalidTxnStateError


class TransactionalCommit(NamedTuple):
    """A commit within a producer's transaction."""

    commit: Commit
    producer_id: int
    producer_epoch: int


def begin_commit(asked: TransactionalCommit, state: GroupState, waiter: Waiter, turn: Turn) -> None:
    """Commit if the transaction has offsets here already; else answer with a `Guard` to verify it under.

    Raises:
        KafkaError: As `commit_in_transaction`.
    """
    open_epoch = state.transactions.epoch(asked.producer_id)
    if open_epoch == asked.producer_epoch:
        _commit(asked, state, waiter, turn)
    else:
        turn.answer(waiter, state.transactions.guard())


def commit_in_transaction(
    asked: TransactionalCommit, guard: Guard, state: GroupState, waiter: Waiter, turn: Turn
) -> None:
    """Commit what was verified under ``guard``; answered with None. The offsets wait for the marker.

    Raises:
        InvalidTxnStateError: The producer's transaction has ended meanwhile.
        CoordinatorLoadInProgressError: It may have: the shard was loaded again. The client asks again.
        KafkaError: The group refuses it, as it does `commit_offsets`.
        TurnFullError: They do not fit into one batch.
    """
    if not state.transactions.knows(guard):
        raise CoordinatorLoadInProgressError
    if state.transactions.has_ended(guard, asked.producer_id, asked.producer_epoch):
        raise InvalidTxnStateError
    _commit(asked, state, waiter, turn)


def end_transaction(end: TransactionEnd, state: GroupState, waiter: Waiter, turn: Turn) -> None:
    """Write the marker: a producer's offsets count, or are forgotten; answered with None."""
    turn.stamp = end
    state.transactions.end(end)
    state.offsets.end_transaction(end.producer_id, committed=end.committed)
    turn.answer(waiter, None)


def _commit(asked: TransactionalCommit, state: GroupState, waiter: Waiter, turn: Turn) -> None:
    commit = asked.commit
    check_commit(commit, state)
    turn.append([one.record for one in commit.offsets])
    turn.stamp = Within(asked.producer_id, asked.producer_epoch)
    ensure_group(state, commit.group_id)
    for one in commit.offsets:
        place = (one.topic, one.partition)
        state.offsets.put_pending(asked.producer_id, commit.group_id, place, one.committed)
    state.transactions.begin(asked.producer_id, asked.producer_epoch)
    turn.answer(waiter, None)
