"""Code shared by SQL ledgers; a dialect adds connections, bulk inserts and error mapping.

Statements are written once, in SQLite's syntax: ``?`` is a parameter, ``main`` the schema of the
ledger's tables. Every statement names the schema, because an effect may change how unqualified
names resolve. Each transaction first locks its group, or the whole database where that is not
possible, so that marks and ids stay valid until the commit.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerSchemaError,
    UsageError,
)
from pykafka_core.idempotent import schema
from pykafka_core.idempotent.deduplication import check_mark
from pykafka_core.idempotent.ids import arrow_ids, checked_ids, is_arrow
from pykafka_core.idempotent.ledger import Clock, PartitionKey, Retention
from pykafka_core.idempotent.single_thread import OneAtATime

NAME_SIZE_MAX = 1024
"""Limit for the name of a group or query, in characters."""
NAME_BYTES_MAX = 2048
"""The limit in UTF-8 bytes: names are indexed; PostgreSQL limits index entries to 2,704 bytes."""
NEVER_BACK = "WHERE excluded.next_offset >= pykafka_marks.next_offset"
"""Marks never decrease, even if the marks read before were wrong."""
TIMEOUT_MS_MAX = 2**31 - 1
"""PostgreSQL rejects larger values; SQLite treats them as 0."""


def wall_clock_ms() -> int:
    """Return this machine's clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Claimed(NamedTuple):
    """A range of ``seq``, both ends inclusive, and how many new ids are in it."""

    first_seq: int
    last_seq: int
    ids_count: int


class Inserted(NamedTuple):
    """Result of recording ids: one bool for each, true if it was new, and the ranges of new ids."""

    mask: Any
    claims: list[Claimed]


class SqlTransaction(ABC):
    """One group's open transaction."""

    def __init__(self, connection: Any, group: str, retention: Retention, now_ms: int) -> None:
        self._connection, self._retention, self._now_ms = connection, retention, now_ms
        self._marks: dict[PartitionKey, int] | None = None
        self._open, self._has_moved = True, False
        self._group_key, self._ids_count = self._lock_group(group)

    @property
    def connection(self) -> Any:
        """The DB-API connection for the effect."""
        self._check_open()
        return self._connection

    def begin_batch(self, query_id: str, batch_id: int) -> bool:
        """Return False if this or a later batch of the query is already committed."""
        self._check_open()
        check_name("query_id", query_id)
        if type(batch_id) is not int or batch_id < 0:
            raise UsageError(f"batch_id is an integer from 0, not {batch_id!r}")
        if batch_id <= self.batches().get(query_id, -1):
            return False
        written = self._run(
            "INSERT INTO main.pykafka_batches (group_key, query_id, batch_id) VALUES (?, ?, ?) "
            "ON CONFLICT (group_key, query_id) DO UPDATE SET batch_id = excluded.batch_id "
            "WHERE excluded.batch_id > pykafka_batches.batch_id",
            [(self._group_key, query_id, batch_id)],
        )
        if not written:
            raise misread(f"the batches of query {query_id!r}")
        return True

    def batches(self) -> dict[str, int]:
        """Return the last committed batch of each query."""
        self._check_open()
        return dict(
            self._rows(
                "SELECT query_id, batch_id FROM main.pykafka_batches WHERE group_key = ?",
                (self._group_key,),
            )
        )

    def marks(self) -> dict[PartitionKey, int]:
        """Return the next offset to process of each known partition."""
        self._check_open()
        return dict(self._known_marks())

    def claim(self, ids: Any) -> Any:
        """Record ids that are new to the group; return True for each new one."""
        self._check_open()
        if is_arrow(ids):
            import pyarrow as pa

            return pa.array(self._claim(arrow_ids(ids), self._insert_arrow_ids).mask, pa.bool_())
        if isinstance(ids, bytes | str) or not isinstance(ids, Sequence):
            raise UsageError(
                f"claim takes a sequence of bytes or an Arrow array, not {type(ids).__name__}"
            )
        mask: list[bool] = self._claim(checked_ids(ids), self._insert_ids).mask
        return mask

    def advance(self, marks: Mapping[PartitionKey, int]) -> None:
        """Set the next offset to process of these partitions."""
        self._check_open()
        known = self._known_marks()
        for key, offset in marks.items():
            check_mark(key, offset, known.get(key, 0))
        moved = {key: offset for key, offset in marks.items() if known.get(key) != offset}
        written = self._run(
            "INSERT INTO main.pykafka_marks (group_key, topic_id, topic, partition, next_offset) "
            f"SELECT ?, ?, ?, ?, ? WHERE {self._IS_SAME} "
            "ON CONFLICT (group_key, topic_id, topic, partition) "
            f"DO UPDATE SET next_offset = excluded.next_offset {NEVER_BACK}",
            [(self._group_key, *key, offset, self._number) for key, offset in moved.items()],
        )
        if moved and written != len(moved):
            is_same = self._rows(f"SELECT 1 WHERE {self._IS_SAME}", (self._number,))
            raise misread("the marks") if is_same else self._ended()
        known.update(moved)
        self._has_moved = self._has_moved or bool(moved)

    def settle(self) -> None:
        """Do the remaining work before the commit."""
        self._check_open()
        if self._has_moved:
            self._check_marks()

    def _check_marks(self) -> None:
        """Check that the marks have the values that were set: a savepoint may have undone them."""
        # Sums of two halves, because a sum of offsets may exceed 64 bits.
        high, low = "next_offset / 65536", "next_offset - next_offset / 65536 * 65536"
        query = (
            f"SELECT count(*), coalesce(sum({high}), 0), coalesce(sum({low}), 0) FROM main.pykafka_marks "
            "WHERE group_key = ?"
        )
        [found] = self._rows(query, (self._group_key,))
        offsets = self._known_marks().values()
        expected = (
            len(offsets),
            sum(offset // 65536 for offset in offsets),
            sum(offset % 65536 for offset in offsets),
        )
        if tuple(map(int, found)) != expected:
            raise marks_rolled_back()

    def finish(self) -> None:
        """Mark the transaction as ended; later calls raise an error."""
        self._open = False

    # Implemented by each dialect.

    _IS_SAME: ClassVar[str]
    """SQL that is true only in the database transaction `_number`, its one parameter."""

    _number: int

    @abstractmethod
    def _is_in_transaction(self) -> bool:
        """Return False once the database transaction has ended.

        It must not contact the server; it is True for a lost connection.
        """

    @abstractmethod
    def _ended(self) -> UsageError:
        """Return the error for that case, with the state of the changes and advice."""

    @abstractmethod
    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    @abstractmethod
    def _run(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement for each row of values; return the number of table rows written."""

    @abstractmethod
    def _select_group(self, group: str) -> list[tuple[Any, ...]]:
        """Return (group key, ids count), locked; empty if the group does not exist."""

    @abstractmethod
    def _insert_ids(self, ids: list[bytes]) -> Inserted:
        """Record the new ids among these; there is at least one id."""

    @abstractmethod
    def _insert_arrow_ids(self, ids: Any) -> Inserted:
        """Do the same for a chunked array from `arrow_ids`; the mask is an Arrow array."""

    # Common code.

    def _check_open(self) -> None:
        """Check that the transaction is open; otherwise a mark would be committed immediately."""
        if not self._open:
            raise UsageError("the ledger's transaction has ended: use it inside its with block")
        if not self._is_in_transaction():
            raise self._ended()

    def _lock_group(self, group: str) -> tuple[int, int]:
        rows = self._select_group(group)
        if not rows:
            # Another process may insert it concurrently; the second query then waits for its end.
            insert = "INSERT INTO main.pykafka_groups (name, ids_count) VALUES (?, 0) ON CONFLICT DO NOTHING"
            self._run(insert, [(group,)])
            rows = self._select_group(group)
        group_key, ids_count = rows[0]
        return group_key, ids_count

    def _known_marks(self) -> dict[PartitionKey, int]:
        if self._marks is None:
            rows = self._rows(
                "SELECT topic_id, topic, partition, next_offset FROM main.pykafka_marks WHERE group_key = ?",
                (self._group_key,),
            )
            self._marks = {
                PartitionKey(bytes(topic_id), topic, partition): offset
                for topic_id, topic, partition, offset in rows
            }
        return self._marks

    def _claim(self, ids: Any, insert: Callable[[Any], Inserted]) -> Inserted:
        self._forget()
        inserted = insert(ids) if len(ids) else Inserted([], [])
        claims = [claim for claim in inserted.claims if claim.ids_count]
        if claims:
            self._run(
                "INSERT INTO main.pykafka_claims (group_key, first_seq, last_seq, ids_count, claimed_at_ms) "
                "VALUES (?, ?, ?, ?, ?)",
                [(self._group_key, *claim, self._now_ms) for claim in claims],
            )
            self._count_ids(sum(claim.ids_count for claim in claims))
        return inserted

    def _forget(self) -> None:
        """Delete the ids of the oldest claims while they exceed the retention."""
        limits = self._retention
        if limits.count is not None:
            # A rolled-back savepoint may have undone part of the count.
            query = "SELECT ids_count FROM main.pykafka_groups WHERE group_key = ?"
            self._ids_count = self._rows(query, (self._group_key,))[0][0]
        while limits != Retention():
            rows = self._rows(
                "SELECT first_seq, last_seq, ids_count, claimed_at_ms FROM main.pykafka_claims "
                "WHERE group_key = ? ORDER BY first_seq LIMIT 1",
                (self._group_key,),
            )
            if not rows or not self._is_old(*rows[0][2:]):
                return
            self._delete_claim(*rows[0][:3])

    def _is_old(self, ids_count: int, claimed_at_ms: int) -> bool:
        age_ms, count = self._retention.age_ms, self._retention.count
        too_old = age_ms is not None and claimed_at_ms < self._now_ms - age_ms
        return too_old or (count is not None and self._ids_count - ids_count >= count)

    def _delete_claim(self, first_seq: int, last_seq: int, ids_count: int) -> None:
        # The plus sign makes SQLite use the range of seq instead of the index of the group's ids.
        self._run(
            "DELETE FROM main.pykafka_ids WHERE seq BETWEEN ? AND ? AND +group_key = ?",
            [(first_seq, last_seq, self._group_key)],
        )
        self._run(
            "DELETE FROM main.pykafka_claims WHERE group_key = ? AND first_seq = ?",
            [(self._group_key, first_seq)],
        )
        self._count_ids(-ids_count)

    def _count_ids(self, change: int) -> None:
        self._ids_count += change
        self._run(
            "UPDATE main.pykafka_groups SET ids_count = ids_count + ? WHERE group_key = ?",
            [(change, self._group_key)],
        )


def check_name(what: str, name: str) -> None:
    """Check the name of a group or query.

    Raises:
        UsageError: It is empty, too long or not text.
    """
    if type(name) is not str or not 1 <= len(name) <= NAME_SIZE_MAX or "\0" in name:
        raise UsageError(
            f"{what} is text of 1 to {NAME_SIZE_MAX} characters without NUL, not {name!r}"
        )
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} is not text that UTF-8 can encode: {error}") from None
    if size > NAME_BYTES_MAX:
        raise UsageError(f"{what} has {size} bytes in UTF-8, and may have {NAME_BYTES_MAX}")


def marks_rolled_back() -> UsageError:
    """Return the error for marks in the database that are not those that were set."""
    return UsageError(
        "the marks are not those that were set: a savepoint that contained advance was rolled back. "
        "Call advance outside of savepoints, after the last one"
    )


def misread(what: str) -> UsageError:
    """Return the error for values that were read differently from those in the database."""
    return UsageError(
        f"{what} were misread: an effect changed how the connection gives values (text_factory, converters, loaders). "
        "Use another connection for that"
    )


T = TypeVar("T", bound=SqlTransaction)


class SqlLedger(OneAtATime, ABC):
    """A ledger with one connection, used by one thread at a time.

    The connection is opened on first use, and reopened after a ledger error, because the error may
    be caused by a setting that an effect left on the connection.
    """

    def __init__(
        self, name: str, *, retention: Retention | None, timeout_ms: int, clock: Clock
    ) -> None:
        if type(timeout_ms) is not int or not 0 < timeout_ms <= TIMEOUT_MS_MAX:
            raise ConfigurationError(
                [f"timeout_ms must be an integer from 1 to {TIMEOUT_MS_MAX}, not {timeout_ms!r}"]
            )
        if not isinstance(retention, Retention | None):
            raise ConfigurationError([f"retention must be a Retention or None, not {retention!r}"])
        super().__init__()
        self._name, self._timeout_ms, self._clock = name, timeout_ms, clock
        self._retention = retention or Retention()
        self._connection: Any = None

    @contextmanager
    def transaction(self, group: str) -> Iterator[SqlTransaction]:
        """Open a transaction; it commits at the end of the block or rolls back on an exception."""
        with self._transaction(group, self._begin) as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, group: str, begin: Callable[[Any, str], T]) -> Iterator[T]:
        check_name("group", group)
        with self._alone():
            if self._connection is None:
                self._connection = self._connect()
            try:
                with self._committing(self._connection):
                    transaction = begin(self._connection, group)
                    try:
                        yield transaction
                        transaction.settle()
                    finally:
                        transaction.finish()
            except (LedgerError, UsageError):
                self._drop_connection()
                raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"

    @abstractmethod
    def _connect(self) -> Any:
        """Return a connection; the tables exist and are checked."""

    @abstractmethod
    def _committing(self, connection: Any) -> AbstractContextManager[None]:
        """Begin; then commit or roll back. Driver errors are raised as `LedgerError`s."""

    @abstractmethod
    def _begin(self, connection: Any, group: str) -> SqlTransaction: ...

    def _let_go(self) -> None:
        self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _check_tables(self, found: Mapping[str, list[str]], versions: Sequence[int]) -> None:
        """Compare the existing tables with the expected ones.

        Args:
            found: Columns of existing tables with our names.
            versions: The rows of ``pykafka_ledger``, if it has the column.

        Raises:
            LedgerSchemaError: They are not a ledger of this version.
        """
        if versions and list(versions) != [schema.VERSION]:
            raise LedgerSchemaError(
                f"{self._name}: the ledger's tables have version {versions[0]}, this program knows "
                f"{schema.VERSION}; use the release that made them, or another database"
            )
        for table in schema.NAMES:
            if found.get(table) != schema.columns_of(table) or not versions:
                raise LedgerSchemaError(
                    f"{self._name}: table {table} is not the ledger's (columns "
                    f"{found.get(table, 'missing')}); rename that table, or use another database"
                )
