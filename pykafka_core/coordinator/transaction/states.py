"""The states of a transaction and their transitions."""

from collections.abc import Mapping
from enum import IntEnum


class TransactionState(IntEnum):
    """States, each with the handling of requests and the transitions out of it.

    Values are as stored.

    In every state, a request with another producer id fails with INVALID_PRODUCER_ID_MAPPING, and
    one with another epoch with PRODUCER_FENCED. TV1 and TV2 are the two versions of the protocol
    that a client may use (KIP-890).
    """

    EMPTY = 0
    """The id has a producer, and no transaction since.

    InitProducerId: a new epoch. AddPartitions: starts a transaction. EndTxn: INVALID_TXN_STATE, but
    an abort by TV2 succeeds: the client does not know whether a partition was added. Out: any of
    these; the id expires.
    """

    ONGOING = 1
    """Partitions may have records of the transaction.

    InitProducerId: aborts it with a new epoch, CONCURRENT_TRANSACTIONS. AddPartitions: adds them.
    EndTxn: decides it. Out: it is decided by the client, another producer or the timeout.
    """

    PREPARE_COMMIT = 2
    """The transaction is decided, and markers are being written to its partitions.

    All requests: CONCURRENT_TRANSACTIONS. Out: all markers are written.
    """

    PREPARE_ABORT = 3
    """See PREPARE_COMMIT."""

    COMPLETE_COMMIT = 4
    """All markers are written.

    InitProducerId, AddPartitions: as in EMPTY. EndTxn: succeeds if it repeats the decision; an
    abort by TV2 in the next epoch is handled as in EMPTY; else INVALID_TXN_STATE. Out: as in EMPTY.
    """

    COMPLETE_ABORT = 5
    """See COMPLETE_COMMIT."""

    DEAD = 6
    """The id was removed and handles no more requests. Never stored."""

    PREPARE_EPOCH_FENCE = 7
    """Kafka's name for the state while a new epoch aborts a transaction. Here this happens within
    one operation, so no transaction is ever seen in this state. Never stored."""

    @property
    def kafka_name(self) -> str:
        """The name in requests and responses."""
        return _NAMES[self]

    @property
    def is_prepared(self) -> bool:
        """Return whether the transaction is decided, and not all markers are written."""
        return self is _PREPARE_COMMIT or self is _PREPARE_ABORT

    @property
    def is_ended(self) -> bool:
        """Return whether there is neither an open nor a prepared transaction; only then may the id
        expire.
        """
        return self in (_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT)


(
    _EMPTY,
    _ONGOING,
    _PREPARE_COMMIT,
    _PREPARE_ABORT,
    _COMPLETE_COMMIT,
    _COMPLETE_ABORT,
    _DEAD,
    _PREPARE_EPOCH_FENCE,
) = TransactionState

_NAMES = {state: state.name.title().replace("_", "") for state in TransactionState}

BY_NAME: Mapping[str, TransactionState] = {name: state for state, name in _NAMES.items()}
"""States by the names in filters of clients."""

_AFTER_ENDED = frozenset({_EMPTY, _ONGOING, _PREPARE_ABORT, _DEAD})

FOLLOWING: Mapping[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: _AFTER_ENDED,
    _ONGOING: frozenset({_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT}),
    _PREPARE_COMMIT: frozenset({_COMPLETE_COMMIT}),
    _PREPARE_ABORT: frozenset({_COMPLETE_ABORT}),
    _COMPLETE_COMMIT: _AFTER_ENDED,
    _COMPLETE_ABORT: _AFTER_ENDED,
    _DEAD: frozenset(),
    _PREPARE_EPOCH_FENCE: frozenset(),
}
"""Allowed transitions. ``TransactionState`` of Kafka has the same table by previous states."""
