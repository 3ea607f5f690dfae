"""EndTxn: the client commits or aborts its transaction, in either version of the protocol.

Theory of operation. With TV1 the epoch stays the same, so a repeated EndTxn cannot be distinguished
from one of the next transaction: a repetition of the last decision succeeds. With TV2 each end
raises the epoch, so a request with the previous epoch is a repetition. A client of TV2 may abort
without a transaction, because it does not know whether a partition was added for it. Results
without an open transaction:

```
                      TV1                   TV2, current epoch    TV2, previous epoch
                      commit     abort      commit     abort      commit     abort
    Empty             invalid    invalid    invalid    aborts     fenced     fenced
    CompleteCommit    succeeds   invalid    invalid    aborts     succeeds   invalid
    CompleteAbort     invalid    succeeds   invalid    aborts     invalid    succeeds
```
"""

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.prepare import prepare
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import EXHAUSTED_EPOCH, TV1, TV2, Transaction
from pykafka_core.errors import ConcurrentTransactionsError, InvalidTxnStateError
from pykafka_core.protocol.messages import EndTxnResponse

_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
"""The state by whether the transaction was committed."""


def end_transaction(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    transaction_version: int,
    state: Transactions,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Commit or abort; the response is an `EndTxnResponse`, sent when the decision is stored,
    before markers are written.

    Args:
        commit: False to abort.
        transaction_version: `TV2` from version 5 of the request on, else `TV1`.

    Raises:
        InvalidRequestError: The transactional id is empty.
        InvalidProducerIdMappingError: The transactional id is unknown, or has another producer id.
        ProducerFencedError: The producer has another epoch.
        ConcurrentTransactionsError: The transaction is prepared but not complete; the client
            retries.
        InvalidTxnStateError: There is no transaction that can end this way.
        CoordinatorLoadInProgressError: A new producer id is needed, and none is available.
    """
    transaction = state.known(transactional_id)
    if transaction_version >= TV2:
        ended = _end_tv2(transaction, producer_id, producer_epoch, commit, state, result)
        response = EndTxnResponse(
            producer_id=ended.producer_id, producer_epoch=ended.producer_epoch
        )
    else:
        _end_tv1(transaction, producer_id, producer_epoch, commit, state, result)
        response = EndTxnResponse()
    result.respond(waiter, response)


def _end_tv1(
    transaction: Transaction,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    state: Transactions,
    result: CoordinatorResult,
) -> None:
    transaction.check_producer(producer_id, producer_epoch)
    if transaction.state.is_prepared:
        raise ConcurrentTransactionsError
    if transaction.state is TransactionState.ONGOING:
        prepare(transaction, state, result, commit=commit, version=TV1)
    elif transaction.state is not _COMPLETE[commit]:
        raise InvalidTxnStateError


def _end_tv2(
    transaction: Transaction,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    state: Transactions,
    result: CoordinatorResult,
) -> Transaction:
    """Return the transaction as it is, or as it will be when its markers are written."""
    if transaction.state.is_prepared:
        raise ConcurrentTransactionsError
    if _is_repeated(transaction, producer_id, producer_epoch):
        if transaction.state is not _COMPLETE[commit]:
            raise InvalidTxnStateError
        return transaction
    transaction.check_producer(producer_id, producer_epoch)
    if commit and transaction.state is not TransactionState.ONGOING:
        raise InvalidTxnStateError
    return prepare(transaction, state, result, commit=commit, version=TV2)


def _is_repeated(transaction: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Return whether the client has already ended a transaction with this epoch, by TV2.

    After an end by TV1 this is never the case: the previous epoch is that of a fenced producer.
    Kafka 4.2 treats it as a repetition, and gives that producer the epoch of the producer that
    fenced it.
    """
    is_ended = transaction.state in _COMPLETE.values()
    if not is_ended or transaction.client_version < TV2:
        return False
    if transaction.previous_producer_id == producer_id:
        return producer_epoch == EXHAUSTED_EPOCH
    is_before = producer_epoch + 1 == transaction.producer_epoch
    return is_before and transaction.producer_id == producer_id
