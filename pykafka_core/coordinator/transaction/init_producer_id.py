"""InitProducerId with a transactional id: assigns a producer id and an epoch, and fences older
producers.
"""

from typing import NamedTuple

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.prepare import fence
from pykafka_core.coordinator.transaction.settings import TransactionSettings
from pykafka_core.coordinator.transaction.state import Transactions, check_id
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    EXHAUSTED_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TV1,
    Transaction,
)
from pykafka_core.errors import (
    ConcurrentTransactionsError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
)
from pykafka_core.protocol.messages import InitProducerIdResponse


class InitProducerId(NamedTuple):
    """The part of a request that the coordinator checks.

    Args:
        transactional_id: Not None: without one there is nothing to coordinate.
        timeout_ms: Maximum time that a transaction may be open.
        producer_id: The current id of a client that continues after an error; -1 for a new client.
        producer_epoch: The current epoch of such a client; -1 for a new client.
    """

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH

    @property
    def is_new(self) -> bool:
        """Return whether the client has no producer id yet."""
        return self.producer_id == NO_PRODUCER_ID


def init_producer_id(
    wanted: InitProducerId, state: Transactions, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Return a producer id and epoch in an `InitProducerIdResponse`.

    An open transaction is aborted with a new epoch. This request and all others fail with
    CONCURRENT_TRANSACTIONS until it is complete; the client retries and gets a higher epoch.

    Raises:
        InvalidRequestError: The transactional id is empty, or only one of producer id and epoch is
            given.
        InvalidTransactionTimeoutError: The timeout is not positive, or above
            ``transaction.max.timeout.ms``.
        ConcurrentTransactionsError: The last transaction is prepared but not complete.
        ProducerFencedError: Another producer has the transactional id now.
        CoordinatorLoadInProgressError: A new producer id is needed, and none is available.
        PolicyViolationError: There are too many transactional ids.
    """
    _check(wanted, state.settings)
    transaction = state.by_id.get(wanted.transactional_id)
    if transaction is None:
        renewed = _begin(wanted, state)
    elif transaction.state.is_prepared:
        raise ConcurrentTransactionsError
    elif not _is_known(wanted, transaction):
        raise ProducerFencedError
    elif transaction.state is TransactionState.ONGOING:
        fence(transaction, state, result)
        result.respond(waiter, ConcurrentTransactionsError.code)
        return
    else:
        renewed = _renew(transaction, wanted, state)
    state.store(renewed._replace(last_update_ms=result.now_ms), result)
    response = InitProducerIdResponse(
        producer_id=renewed.producer_id, producer_epoch=renewed.producer_epoch
    )
    result.respond(waiter, response)


def _check(wanted: InitProducerId, settings: TransactionSettings) -> None:
    check_id(wanted.transactional_id)
    if wanted.is_new != (wanted.producer_epoch == NO_EPOCH):
        raise InvalidRequestError
    if not 0 < wanted.timeout_ms <= settings.max_timeout_ms:
        raise InvalidTransactionTimeoutError


def _begin(wanted: InitProducerId, state: Transactions) -> Transaction:
    """Return a new entry.

    A client may still have a producer id from before the expiry; it also gets a new one.
    """
    return Transaction(
        wanted.transactional_id,
        TransactionState.EMPTY,
        state.take_producer_id(),
        0,
        NO_EPOCH,
        NO_PRODUCER_ID,
        NO_PRODUCER_ID,
        wanted.timeout_ms,
        NO_PARTITIONS,
        NO_TIMESTAMP,
        NO_TIMESTAMP,
        TV1,
    )


def _is_known(wanted: InitProducerId, transaction: Transaction) -> bool:
    """Return whether the client may be the current producer; `_renew` checks the epoch.

    It may not have received the response with the new producer id yet.
    """
    is_before_exchange = (
        wanted.producer_id == transaction.previous_producer_id
        and wanted.producer_epoch >= EXHAUSTED_EPOCH
    )
    return wanted.is_new or wanted.producer_id == transaction.producer_id or is_before_exchange


def _renew(transaction: Transaction, wanted: InitProducerId, state: Transactions) -> Transaction:
    """Return the entry with the next epoch, with a new producer id, or as the first of a repeated
    request left it.
    """
    is_present = wanted.producer_epoch == transaction.producer_epoch
    producer_id, producer_epoch = transaction.producer_id, transaction.producer_epoch
    last_epoch, previous_id = NO_EPOCH if wanted.is_new else producer_epoch, NO_PRODUCER_ID
    if wanted.is_new or is_present:
        if transaction.is_exhausted:
            previous_id, producer_id, producer_epoch = producer_id, state.take_producer_id(), 0
        else:
            producer_epoch += 1
    elif wanted.producer_epoch == transaction.last_producer_epoch:
        last_epoch, previous_id = wanted.producer_epoch, transaction.previous_producer_id
    else:
        raise ProducerFencedError
    return transaction._replace(
        state=TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_epoch,
        previous_producer_id=previous_id,
        timeout_ms=wanted.timeout_ms,
        start_ms=NO_TIMESTAMP,
    )
