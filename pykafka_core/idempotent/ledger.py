"""What a ledger promises: the effect, the ids it was done for and the offsets it covers commit together.

Theory of operation. A consumer that writes to a database and notes its progress elsewhere has two
commits, and a crash between them does the effect twice or not at all. A ledger keeps the progress in
the database that receives the effect, so that there is one commit::

    with ledger.transaction("billing") as transaction:      # waits for the group's other transaction
        marks = transaction.marks()                          # next offset to process, per partition
        fresh = offsets >= mark                              # against redelivery
        new = transaction.claim(ids of the fresh)            # against producers that sent a record twice
        effect(transaction.connection, fresh and new)
        transaction.advance(marks after the batch)

Whatever stops the block rolls all of it back; whoever comes next reads the marks and goes on from
there. It does not matter what the caller believes it has processed: only the ledger is asked.

Two tiers. Marks stop *redelivery* and cost one row per partition. Ids stop *producer duplicates*, one
record written to the log twice, and cost an index entry per record: claim them when producers retry
on their own. Marks are keyed by topic id, so a topic deleted and recreated under the same name starts
at its beginning instead of being swallowed up to the old mark.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

from pykafka_core.errors import ConfigurationError
from pykafka_core.types import TopicId


class PartitionKey(NamedTuple):
    """One partition of one topic's life.

    ``topic_id`` has 16 bytes, all zero for brokers without topic ids (before Kafka 2.8): then a
    topic that was recreated cannot be told from the old one. ``topic`` is its name.
    """

    topic_id: TopicId
    topic: str
    partition: int


class ArrowArray(Protocol):
    """A ``pyarrow.Array`` (not chunked), without importing pyarrow."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A ``pyarrow.ChunkedArray``, or a column of another library that is a stream of Arrow arrays."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How long claimed ids are remembered; without limits, for ever.

    An id is forgotten when it exceeds any of the limits; a duplicate that arrives after that counts
    as new. Being seen again does not make an id younger. The ids of one transaction are forgotten
    together, so somewhat more than asked may be kept, never less.

    Args:
        age_ms: Forget ids claimed longer ago than this, in milliseconds of the ledger's clock.
        count: Keep this many of each group, the youngest.

    Raises:
        ConfigurationError: A limit that is not a positive integer.
    """

    age_ms: int | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        limits = {"age_ms": self.age_ms, "count": self.count}
        problems = [
            f"Retention: {name} must be a positive integer or None, not {value!r}"
            for name, value in limits.items()
            if value is not None and (type(value) is not int or value <= 0)
        ]
        if problems:
            raise ConfigurationError(problems)


Clock = Callable[[], int]
"""Milliseconds since 1970."""


class Transaction(Protocol):
    """One open database transaction of one group. Only for the thread and the block that opened it."""

    @property
    def connection(self) -> Any:
        """The DB-API connection on which the effect writes. The effect neither commits nor rolls back."""

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        """Note a batch of a source that numbers its batches and repeats the last one after a crash.

        Args:
            query_id: Whose numbers they are; each query's start at any number and grow.
            batch_id: 0 or more.

        Returns:
            False if this batch or a later one of the query was committed before: skip all of it.
        """

    def batches(self) -> dict[str, int]:
        """The last committed batch of each query that the group has noted batches of."""

    def marks(self) -> dict[PartitionKey, int]:
        """The next offset to process of every partition the group knows; nobody else moves it until the end."""

    @overload
    def claim(self, ids: Sequence[bytes]) -> list[bool]: ...
    @overload
    def claim(self, ids: ArrowArray | ArrowStream) -> Any: ...
    def claim(self, ids: Sequence[bytes] | ArrowArray | ArrowStream) -> Any:
        """Record message ids that the group has not seen.

        Args:
            ids: 1 to 1,024 bytes each: bytes objects, or an Arrow array, chunked or not, of (large) binary,
                string or fixed-size binary without nulls.

        Returns:
            One bool per id (a list, or for Arrow a boolean array that is not chunked): True where the id
            was not seen before. Of equal ids in one call the first is the new one.

        Raises:
            MessageIdError: An id is null, empty, too long or of another type; nothing was recorded.
        """

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions.

        Raises:
            UsageError: A mark would go back, or is negative; nothing was changed.
        """


class Ledger(Protocol):
    """Where a group's progress is kept, in the database that its effects go to. Thread-safe."""

    def transaction(self, group: str) -> AbstractContextManager[Transaction]:
        """Open a transaction; it commits at the end of the block and rolls back on any exception.

        Transactions of one group follow each other, in this and in every other process.

        Raises:
            LedgerUnavailableError: No database, no answer in time, or it went away in the middle. If
                that was during the commit, the next transaction's marks say whether it took place.
            LedgerSchemaError: The database has tables of these names that are not this ledger's.
            UsageError: Opened within another transaction of the same ledger and thread, or the
                effect ended the transaction itself.
        """

    def close(self) -> None:
        """Let go of the database. Closing twice is no error."""


TableEffect = Callable[[Any, Any], object]
"""Called with a transaction's connection and a ``pyarrow.Table``; it neither commits nor rolls back."""


class StatementLedger(Ledger, Protocol):
    """A ledger whose database can do an effect by itself: it is given rows and a statement."""

    def statement(self, sql: str) -> TableEffect:
        """An effect that runs one statement on the rows that it is given. It can be pickled.

        The rows are in the temporary view ``staged``, with their names and types, while the statement runs; it is
        empty each time. Names stand in quotes there, so one with a capital letter or a reserved word needs them
        in the statement. ``staged`` without a schema is always this table: one of yours of that name is hidden, and
        needs its schema.

        Args:
            sql: One statement that changes rows, such as ``INSERT … SELECT … FROM staged``, without parameters. Where a
                transaction has several parts, it runs for each of them. Rows that it returns are dropped.

        Raises:
            ConfigurationError: Another kind of statement, or none. In particular those that begin or end transactions.

        The effect itself raises:
            UsageError: A column has a name or a type that the database has no form for, or a value that it would
                change; the statement would change ``staged``.
            Exception: The driver's, with the statement as a note; also where the text has two statements.
        """
