"""The contract of a ledger: effect, message ids and offsets commit in one transaction.

Theory of operation. A consumer that writes to a database and stores its progress elsewhere has two
commits; a crash between them repeats the effect or loses it. A ledger stores the progress in the
database that receives the effect, so that there is one commit::

    with ledger.transaction("billing") as transaction:  # waits for the group's other transaction
        marks = transaction.marks()                     # next offset to process, per partition
        fresh = offsets >= mark                         # removes redelivery
        new = transaction.claim(ids of the fresh)       # removes records that were sent twice
        effect(transaction.connection, fresh and new)
        transaction.advance(marks after the batch)

Any exception in the block rolls back all of it; the next transaction reads the marks and continues
from there. State of the caller is never used, only the state of the ledger.

There are two levels. Marks prevent *redelivery* and cost one row per partition. Ids prevent
*producer duplicates*, where a record was written to the log twice, and cost an index entry per
record: claim them if producers retry by themselves. Marks are keyed by topic id, so a topic that
was recreated under the same name is read from its first record, instead of being skipped up to the
old mark.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

from pykafka_core.errors import ConfigurationError
from pykafka_core.types import TopicId


class PartitionKey(NamedTuple):
    """A partition of a topic, identified by topic id.

    ``topic_id`` has 16 bytes, all zero for brokers without topic ids (before Kafka 2.8). Such a
    topic cannot be distinguished from a recreated one. ``topic`` is its name.
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
    """A ``pyarrow.ChunkedArray``, or another library's column that exports a stream of arrays."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How long claimed ids are remembered; forever without limits.

    An id is deleted once it exceeds any limit; a later duplicate is treated as new. A repeated id
    keeps its age. The ids of one transaction are deleted together, so slightly more ids than the
    limits require may be kept, never fewer.

    Args:
        age_ms: Delete ids that were claimed longer ago, in milliseconds of the ledger's clock.
        count: Keep this many ids of each group, the most recent ones.

    Raises:
        ConfigurationError: A limit is not a positive integer.
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
    """One open database transaction of a group, for the thread and the block that opened it."""

    @property
    def connection(self) -> Any:
        """The DB-API connection for the effect, which must neither commit nor roll back."""

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        """Record a batch of a source that numbers batches and repeats the last one after a crash.

        Args:
            query_id: Id of the query that numbers the batches. Its numbers start anywhere and
                increase.
            batch_id: 0 or more.

        Returns:
            False if this batch or a later one of the query is already committed: skip it.
        """

    def batches(self) -> dict[str, int]:
        """Return the last committed batch of each query of the group."""

    def marks(self) -> dict[PartitionKey, int]:
        """Return the next offset to process of each known partition; locked until the end."""

    @overload
    def claim(self, ids: Sequence[bytes]) -> list[bool]: ...
    @overload
    def claim(self, ids: ArrowArray | ArrowStream) -> Any: ...
    def claim(self, ids: Sequence[bytes] | ArrowArray | ArrowStream) -> Any:
        """Record message ids that are new to the group.

        Args:
            ids: 1 to 1,024 bytes each: bytes objects, or an Arrow array (also chunked) of (large)
                binary, string or fixed-size binary without nulls.

        Returns:
            One bool per id, True if it is new: a list, or for Arrow a boolean array that is not
            chunked. Of equal ids in one call, the first is new.

        Raises:
            MessageIdError: An id is null, empty, too long or of another type; nothing was recorded.
        """

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions.

        Raises:
            UsageError: A mark would decrease, or is negative; nothing was changed.
        """


class Ledger(Protocol):
    """Stores the progress of groups in the database that their effects write to. Thread-safe."""

    def transaction(self, group: str) -> AbstractContextManager[Transaction]:
        """Open a transaction; it commits at the end of the block and rolls back on any exception.

        Transactions of one group run one after another, across all processes.

        Raises:
            LedgerUnavailableError: The database is not available, timed out, or the connection was
                lost. If that was during the commit, the marks of the next transaction show whether
                it took place.
            LedgerSchemaError: The database has tables of these names that are not this ledger's.
            UsageError: This thread already has a transaction of this ledger, or the effect ended
                the transaction itself.
        """

    def close(self) -> None:
        """Release the database connection. It may be called repeatedly."""


TableEffect = Callable[[Any, Any], object]
"""Called with a transaction's connection and a ``pyarrow.Table``; must not commit or roll back."""


class StatementLedger(Ledger, Protocol):
    """A ledger whose database can run an effect that is a SQL statement on staged rows."""

    def statement(self, sql: str) -> TableEffect:
        """Return an effect that runs one statement on the rows that it gets. It can be pickled.

        While the statement runs, the rows are in the temporary view ``staged``, with their names
        and types; each run sees only its own rows. Column names are created quoted, so names with
        capital letters and reserved words need quotes in the statement. ``staged`` without a schema
        is always this view; to use your own table of that name, give its schema.

        Args:
            sql: One statement that changes rows, such as ``INSERT … SELECT … FROM staged``, without
                parameters. If a transaction has several parts, it runs once for each. Returned rows
                are ignored.

        Raises:
            ConfigurationError: Not a statement, or of another kind, in particular one that starts
                or ends a transaction.

        The effect itself raises:
            UsageError: The database cannot represent a column's name, type or value unchanged, or
                the statement would change ``staged``.
            Exception: The driver's error, with the statement as a note; also for two statements.
        """
