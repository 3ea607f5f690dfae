"""A ledger in an SQLite file: the effect's tables live in the same file."""

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
from pykafka_core.idempotent import tables
from pykafka_core.idempotent.ids import lists_of
from pykafka_core.idempotent.ledger import Clock, Retention, TableEffect
from pykafka_core.idempotent.plan import first_of_each
from pykafka_core.idempotent.sql import Claimed, Inserted, SqlLedger, SqlTransaction, wall_clock_ms
from pykafka_core.idempotent.statements.checks import STAGED
from pykafka_core.idempotent.statements.sqlite import ROWID, SQLiteStatement

TIMEOUT_MS = 30_000
_BUSY_PAUSE_S = 0.01
_OPEN = "pykafka_transaction"
"""A view that is there while a transaction is open, for what its end does: see `_Guard`."""

_ENDED = (
    "SQLite rolled the ledger's transaction back at an error that the effect caught (OR ROLLBACK, RAISE(ROLLBACK), a "
    "full disk): nothing of it is left, and all of it is to be done when the records come again. Let such errors pass "
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

    A file is opened with a write-ahead log and ``synchronous=FULL``: a commit that returned survives
    a power cut. The whole database is locked while a transaction is open, whatever its group.

    Args:
        database: A path, made when missing; or a function that opens a connection, which then has
            the journal and durability that the function gave it, and an authorizer of the ledger's.
        retention: How long ids are remembered; for ever by default.
        timeout_ms: How long to wait for another connection's transaction.
        clock: What retention by age goes by.

    Raises:
        ConfigurationError: An argument that cannot be used, such as a path in memory: it would forget.
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
        """An effect that runs one statement on the rows that it is given, see `StatementLedger`.

        Columns of the table ``staged``: booleans and integers are INTEGER, floating point numbers REAL, binary BLOB,
        strings TEXT. Decimals are exact TEXT; dates are TEXT as 2026-11-25, times as 2026-11-25 12:30:00.000000, in UTC
        if they have a time zone; headers are JSON, an array of objects with ``key`` and ``value``, the latter as
        ``hex()`` writes it. A NaN is refused, as SQLite would make it NULL.

        What stands in double quotes is a name, as in other databases; SQLite alone would take a misspelt one for text.
        Where ``ON CONFLICT`` follows ``FROM staged``, SQLite takes its ON for that of a join: write ``WHERE true``
        between them.
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
                connection.isolation_level = None  # It is the ledger that begins and commits.
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
            for statement in tables.create_statements(TYPES):
                connection.execute(statement)
            connection.execute("INSERT INTO main.pykafka_ledger VALUES (?)", (tables.VERSION,))
        found = _columns_found(connection)
        versions: list[int] = []
        if found.get("pykafka_ledger") == tables.columns_of("pykafka_ledger"):
            versions = [
                row[0] for row in _rows(connection, "SELECT version FROM main.pykafka_ledger")
            ]
        self._check_tables(found, versions)
        connection.execute("COMMIT")

    def _identity(self) -> tuple[int, int] | None:
        """Which file the path names now."""
        if self._path is None:
            return None
        found = stat(self._path)
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """A file that was deleted or replaced still takes commits, and nobody would ever see them."""
        if self._identity() != self._file:
            raise LedgerUnavailableError(f"{self._name}: another file has taken its place")

    @contextmanager
    def _committing(self, connection: sqlite3.Connection) -> Generator[None]:
        guard = _Guard(connection)
        try:
            with _errors(self._name):
                self._check_file()
                connection.text_factory = str  # An effect may have set another one.
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
        """Closing is what rolls back after an error that left the connection unusable."""
        try:
            self._check_file()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except (sqlite3.Error, OSError, LedgerUnavailableError):
            self._drop_connection()

    def _begin(self, connection: sqlite3.Connection, group: str) -> SqlTransaction:
        return SQLiteTransaction(connection, self._name, group, self._retention, self._clock())


class SQLiteTransaction(SqlTransaction):
    """Statements go through cursors of their own, whatever rows the connection's owner prefers."""

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

    # The guard lets no other transaction begin.
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
        # The key stands in the statement so that the rows come from zip: no Python step per id. Ids in
        # the index's order share its pages: half the time from a few hundred thousand ids on.
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
    """Refuses COMMIT and ROLLBACK while the effect has the connection, and everything once SQLite rolled back itself.

    SQLite asks when it prepares a statement, and the connection keeps prepared ones. A rollback that undoes a change of
    the schema has it prepare all of them again: each transaction has such a change, the view `_OPEN`. So no statement
    of an effect that caught the error is committed by itself, or opens another transaction.

    While a statement's rows are staged it also refuses the rowid of their view, which SQLite may be compiled to give as
    NULL. A connection has one authorizer, so nothing else may set one.
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
        ):  # The effect closed the connection: COMMIT will say so.
            self._connection.set_authorizer(None)
        if self._refused is not None and str(error) != self._refused:
            raise UsageError(self._refused) from error


def _write_ahead(connection: sqlite3.Connection, timeout_ms: int) -> None:
    """Switch to write-ahead logging. SQLite itself does not wait while another process switches the same file."""
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
    """The driver's errors as the ledger's."""
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
    for table in tables.NAMES:
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
    return abspath(path)  # the same file after a chdir, and what errors name
