"""A ledger in an SQLite file, which also holds the effect's tables."""

import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from os import PathLike, fspath, stat
from os.path import abspath
from typing import Any

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerSchemaError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent import schema
from pykafka_core.idempotent.deduplication import first_of_each
from pykafka_core.idempotent.ids import lists_of
from pykafka_core.idempotent.ledger import Clock, Retention, TableEffect
from pykafka_core.idempotent.sql import Claimed, Inserted, SqlLedger, SqlTransaction, wall_clock_ms
from pykafka_core.idempotent.statements.checks import STAGED
from pykafka_core.idempotent.statements.sqlite import ROWID, SQLiteStatement

TIMEOUT_MS = 30_000
_BUSY_PAUSE_S = 0.01
_OPEN = "pykafka_transaction"
"""Name of a view that exists during a transaction; `_Guard` needs it."""

_ENDED = (
    "SQLite rolled the ledger's transaction back at an error that the effect caught (OR ROLLBACK, RAISE(ROLLBACK), a "
    "full disk): all of it is undone and must be repeated when the records are read again. Let such errors pass "
    "out of the effect"
)
_STAGED_IS_THERE = {sqlite3.SQLITE_CREATE_TEMP_VIEW: True, sqlite3.SQLITE_DROP_TEMP_VIEW: False}
TYPES = {
    "integer": "INTEGER",
    "bytes": "BLOB",
    "serial": "INTEGER",
    "counter": "INTEGER",
    "seq": "INTEGER PRIMARY KEY",
}


class SQLiteLedger(SqlLedger):
    """A ledger in an SQLite database.

    A file is opened with a write-ahead log and ``synchronous=FULL``: a commit survives a power
    failure. A transaction of any group locks the whole database.

    Args:
        database: A path, which is created if missing; or a function that opens a connection. The
            function chooses journal and durability; the ledger sets the connection's authorizer.
        retention: How long ids are remembered; forever by default.
        timeout_ms: How long to wait for another connection's transaction.
        clock: The clock for retention by age.

    Raises:
        ConfigurationError: An invalid argument, such as a database in memory, which would not keep
            the progress.
    """

    def __init__(
        self,
        database: str | PathLike[str] | Callable[[], sqlite3.Connection],
        *,
        retention: Retention | None = None,
        timeout_ms: int = TIMEOUT_MS,
        clock: Clock = wall_clock_ms,
    ) -> None:
        self._path: str | None = None
        self._file: tuple[int, int] | None = None
        if callable(database):
            name, self._factory = "SQLite connection", database
        else:
            name = self._path = _checked_path(database)
            self._factory = self._open_file
        super().__init__(name, retention=retention, timeout_ms=timeout_ms, clock=clock)

    def statement(self, sql: str) -> TableEffect:
        """Return an effect that runs one statement on the rows that it gets: `StatementLedger`.

        Columns of the view ``staged``: booleans and integers are INTEGER, floating point numbers
        REAL, binary BLOB, strings TEXT. Decimals are exact TEXT. Dates are TEXT such as 2026-11-25,
        times such as 2026-11-25 12:30:00.000000, in UTC if they have a time zone. Headers are JSON,
        an array of objects with ``key`` and ``value``, the latter in the format of ``hex()``. A NaN
        is rejected, because SQLite would store it as NULL.

        Text in double quotes is a name, as in other databases; plain SQLite would treat a
        misspelled name as text. In ``INSERT … SELECT … FROM staged``, put ``WHERE true`` before
        ``ON CONFLICT``, because SQLite would parse its ON as that of a join.
        """
        return SQLiteStatement(sql)

    def _open_file(self) -> sqlite3.Connection:
        assert self._path is not None
        return sqlite3.connect(self._path, timeout=self._timeout_ms / 1000, check_same_thread=False)

    def _connect(self) -> sqlite3.Connection:
        with _errors(self._name):
            connection = self._factory()
            try:
                if self._path is not None:
                    _write_ahead(connection, self._timeout_ms)
                    connection.execute("PRAGMA synchronous = FULL")
                connection.isolation_level = None  # the ledger begins and commits explicitly
                connection.execute(f"PRAGMA busy_timeout = {self._timeout_ms}")
                self._make_or_check_tables(connection)
                self._file = self._identity()
            except BaseException:
                connection.close()
                raise
            return connection

    def _make_or_check_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if not _columns_found(connection):
            for statement in schema.create_statements(TYPES):
                connection.execute(statement)
            connection.execute("INSERT INTO main.pykafka_ledger VALUES (?)", (schema.VERSION,))
        found = _columns_found(connection)
        versions: list[int] = []
        if found.get("pykafka_ledger") == schema.columns_of("pykafka_ledger"):
            versions = [
                row[0] for row in _rows(connection, "SELECT version FROM main.pykafka_ledger")
            ]
        self._check_tables(found, versions)
        connection.execute("COMMIT")

    def _identity(self) -> tuple[int, int] | None:
        """Return the identity of the file that is now at the path."""
        if self._path is None:
            return None
        found = stat(self._path)
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """Check that the file was not deleted or replaced: commits to it would be lost."""
        if self._identity() != self._file:
            raise LedgerUnavailableError(f"{self._name}: another file has taken its place")

    @contextmanager
    def _committing(self, connection: sqlite3.Connection) -> Generator[None]:
        guard = _Guard(connection)
        try:
            with _errors(self._name):
                self._check_file()
                connection.text_factory = str  # an effect may have changed it
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"CREATE TEMPORARY VIEW {_OPEN} AS SELECT 1")
            with guard:
                yield
            with _errors(self._name):
                self._check_file()
                connection.execute(f"DROP VIEW temp.{_OPEN}")
                connection.execute("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Roll back; close the connection if an error left it unusable, which also rolls back."""
        try:
            self._check_file()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except (sqlite3.Error, OSError, LedgerUnavailableError):
            self._drop_connection()

    def _begin(self, connection: sqlite3.Connection, group: str) -> SqlTransaction:
        return SQLiteTransaction(connection, self._name, group, self._retention, self._clock())


class SQLiteTransaction(SqlTransaction):
    """A transaction with its own cursors, independent of the connection's row factory."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        name: str,
        group: str,
        retention: Retention,
        now_ms: int,
    ) -> None:
        self._name = name
        super().__init__(connection, group, retention, now_ms)

    # The guard prevents any other transaction.
    _IS_SAME = "?"
    _number = 1

    def _is_in_transaction(self) -> bool:
        with _errors(self._name):
            found: bool = self._connection.in_transaction
            return found

    def _ended(self) -> UsageError:
        return UsageError(_ENDED)

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _errors(self._name):
            return _rows(self._connection, statement, values)

    def _run(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        with _errors(self._name):
            count: int = self._connection.cursor().executemany(statement, rows).rowcount
            return count

    def _select_group(self, group: str) -> list[tuple[Any, ...]]:
        query = "SELECT group_key, ids_count FROM main.pykafka_groups WHERE name = ?"
        return self._rows(query, (group,))

    def _insert_ids(self, ids: list[bytes]) -> Inserted:
        last_query = "SELECT coalesce(max(seq), 0) FROM main.pykafka_ids"
        before = self._rows(last_query)[0][0]
        # The key is part of the statement so that zip can yield the rows, without a Python step per
        # id. Sorted ids share index pages: half the time from a few hundred thousand ids on.
        self._run(
            f"INSERT INTO main.pykafka_ids (group_key, id) VALUES ({self._group_key:d}, ?) ON CONFLICT DO NOTHING",
            zip(sorted(ids), strict=True),
        )
        last = self._rows(last_query)[0][0]
        if last - before == len(ids):
            return Inserted([True] * len(ids), [Claimed(before + 1, last, len(ids))])
        new = self._rows("SELECT id FROM main.pykafka_ids WHERE seq > ?", (before,))
        mask = first_of_each(ids, {value for (value,) in new})
        return Inserted(mask, [Claimed(before + 1, last, len(new))])

    def _insert_arrow_ids(self, ids: Any) -> Inserted:
        import pyarrow as pa

        masks, claims = [], []
        for part in lists_of(ids):
            mask, [claim] = self._insert_ids(part)
            masks.append(pa.array(mask, pa.bool_()))
            claims.append(claim)
        count = sum(claim.ids_count for claim in claims)
        whole = Claimed(claims[0].first_seq, claims[-1].last_seq, count)
        return Inserted(pa.concat_arrays(masks), [whole])


class _Guard:
    """Rejects COMMIT and ROLLBACK by an effect, and all statements after SQLite rolled back itself.

    SQLite calls the authorizer when it prepares a statement, and the connection caches prepared
    statements. A rollback that undoes a schema change makes SQLite prepare all of them again; the
    view `_OPEN` ensures that each transaction has such a change. So no statement of an effect that
    caught the error is committed on its own, or opens another transaction.

    While rows are staged, the guard also rejects the rowid of their view, which is NULL in some
    builds of SQLite. A connection has one authorizer, so no other code may set one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._refused: str | None = None
        self._is_staged = False

    def _authorize(
        self, action: int, name: str | None, column: str | None, schema: str | None, _: object
    ) -> int:
        if not self._connection.in_transaction:
            self._refused = _ENDED
        elif action == sqlite3.SQLITE_TRANSACTION:
            self._refused = (
                "the effect tried to commit or roll back (executescript commits first): "
                "it writes, the ledger commits"
            )
        elif name == STAGED and action in _STAGED_IS_THERE:
            self._is_staged = _STAGED_IS_THERE[action]
            return sqlite3.SQLITE_OK
        elif (
            action == sqlite3.SQLITE_READ
            and self._is_staged
            and (name, column, schema) == (STAGED, ROWID, "temp")
        ):
            return sqlite3.SQLITE_DENY
        else:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def __enter__(self) -> None:
        self._connection.set_authorizer(self._authorize)

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        with suppress(
            sqlite3.ProgrammingError
        ):  # the effect closed the connection, and COMMIT will fail
            self._connection.set_authorizer(None)
        if self._refused is not None and str(error) != self._refused:
            raise UsageError(self._refused) from error


def _write_ahead(connection: sqlite3.Connection, timeout_ms: int) -> None:
    """Enable write-ahead logging. SQLite itself does not wait for a process that does the same."""
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_BUSY_PAUSE_S)


@contextmanager
def _errors(name: str) -> Generator[None]:
    """Convert the driver's errors to the ledger's."""
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.ProgrammingError, OSError) as error:
        raise LedgerUnavailableError(f"{name}: {error}") from error
    except sqlite3.DatabaseError as error:
        kind = LedgerSchemaError if "not a database" in str(error) else LedgerError
        raise kind(f"{name}: {error}") from error


def _rows(
    connection: sqlite3.Connection, statement: str, values: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(statement, values).fetchall()


def _columns_found(connection: sqlite3.Connection) -> dict[str, list[str]]:
    found = {}
    for table in schema.NAMES:
        columns = _rows(connection, f"PRAGMA main.table_info({table})")
        if columns:
            found[table] = [column[1] for column in columns]
    return found


def _checked_path(database: str | PathLike[str]) -> str:
    try:
        path = fspath(database)
    except TypeError:
        path = None
    if not isinstance(path, str) or not path or ":memory:" in path or path.startswith("file:"):
        raise ConfigurationError(
            [
                f"database is the path of a file or a function that opens a connection, not {database!r}: "
                "a ledger in memory would forget"
            ]
        )
    return abspath(path)  # stays valid after a chdir, and is the name in errors
