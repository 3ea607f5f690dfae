"""The states of a transaction, and which may follow which."""

from collections.abc import Mapping
from enum import IntEnum


class TransactionState(IntEnum):
    """Each with how requests are answered in it, and what leads out of it. Values are as stored.

    Wherever a producer is named, another producer id is told INVALID_PRODUCER_ID_MAPPING, and another epoch
    PRODUCER_FENCED. TV1 and TV2 are the two versions of the protocol that a client may speak (KIP-890).
    """

    EMPTY = 0
    """The id has a producer, and no transaction since.

    InitProducerId: a new epoch. AddPartitions: begins a transaction. EndTxn: INVALID_TXN_STATE, but an abort of TV2
    succeeds: the client does not know whether a partition was added. Out: any of these; the id expires.
    """

    ONGOING = 1
    """Partitions may have records of the transaction.

    InitProducerId: aborts it with a new epoch, CONCURRENT_TRANSACTIONS. AddPartitions: adds them. EndTxn: decides it.
    Out: it is decided, by the client, another producer or the timeout.
    """

    PREPARE_COMMIT = 2
    """It is decided, and markers are written to its partitions.

    All requests: CONCURRENT_TRANSACTIONS. Out: all markers are written.
    """

    PREPARE_ABORT = 3
    """As PREPARE_COMMIT."""

    COMPLETE_COMMIT = 4
    """All is written.

    InitProducerId, AddPartitions: as when empty. EndTxn: succeeds if it repeats the decision; an abort of TV2 by the
    next epoch as when empty; else INVALID_TXN_STATE. Out: as when empty.
    """

    COMPLETE_ABORT = 5
    """As COMPLETE_COMMIT."""

    DEAD = 6
    """The id was removed; nothing asks it any more. Never stored."""

    PREPARE_EPOCH_FENCE = 7
    """Kafka's name for the moment in which a transaction is aborted by a new epoch. It is over within one operation
    here, so that no transaction is ever seen in it. Never stored."""

    @property
    def kafka_name(self) -> str:
        """As clients read and write it."""
        return _NAMES[self]

    @property
    def is_prepared(self) -> bool:
        """Whether it is decided, and not everybody knows."""
        return self is _PREPARE_COMMIT or self is _PREPARE_ABORT

    @property
    def is_ended(self) -> bool:
        """Whether no transaction is open; only then may the id expire."""
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
"""States by the names that clients filter with."""

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
"""What may come next. ``TransactionState`` of Kafka has the same table by previous states."""
