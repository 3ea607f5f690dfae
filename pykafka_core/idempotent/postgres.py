"""A ledger in PostgreSQL: the effect's tables live in the same database. Needs psycopg 3 (extra ``postgres``)."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent import tables
from pykafka_core.idempotent.ledger import Clock, Retention
from pykafka_core.idempotent.sql import SqlLedger, SqlTransaction, wall_clock_ms

TIMEOUT_MS = 30_000
TYPES = {
    "integer": "bigint",
    "bytes": "bytea",
    "serial": "bigint GENERATED ALWAYS AS IDENTITY",
}

COPY_IDS_MIN = 1000
"""From so many ids on, COPY into a temporary table is faster than one array parameter."""

CREATION_LOCK = 0x7079_6B61_666B_61  # "pykafka" in ASCII: an advisory lock's number.
STAGING = "pykafka_new_ids"


class PostgresLedger(SqlLedger):
    """A ledger in a PostgreSQL database, in the first schema of the search path.

    A group's row is locked while its transaction is open: groups do not wait for each other. The
    connection is in autocommit mode between transactions. ``synchronous_commit`` is switched on where
    the server has it off: a commit that returned must not be forgotten, or a source that keeps its own
    checkpoint (Spark) would not send the records again.

    Args:
        conninfo: As for ``psycopg.connect``: ``"host=… dbname=… user=…"`` or a URL.
        retention: How long ids are remembered; for ever by default.
        timeout_ms: How long to wait for the group's other transaction. A client that vanished with
            its machine holds its lock until the server misses it (``tcp_keepalives_idle``).
        clock: What retention by age goes by.

    Raises:
        ConfigurationError: An argument that cannot be used.
        ImportError: psycopg is not installed.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        retention: Retention | None = None,
        timeout_ms: int = TIMEOUT_MS,
        clock: Clock = wall_clock_ms,
    ) -> None:
        self._psycopg = _psycopg()
        self._conninfo = conninfo
        name = _name(self._psycopg, conninfo)
        super().__init__(name, retention=retention, timeout_ms=timeout_ms, clock=clock)

    def _connect(self) -> Any:
        with _errors(self._psycopg, self._name):
            connection = self._psycopg.connect(self._conninfo, autocommit=True)
            try:
                # Each statement must see what was committed while it waited for the group's row.
                connection.isolation_level = self._psycopg.IsolationLevel.READ_COMMITTED
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _prepare(self, connection: Any) -> None:
        connection.execute(f"SET lock_timeout = {self._timeout_ms}")
        if _rows(connection, "SHOW synchronous_commit") == [("off",)]:
            connection.execute("SET synchronous_commit = on")
        with connection.transaction():
            _rows(connection, "SELECT pg_advisory_xact_lock(%s)", (CREATION_LOCK,))
            if not self._columns_found(connection):
                for statement in tables.create_statements(**TYPES):
                    connection.execute(statement)
                connection.execute("INSERT INTO pykafka_ledger VALUES (%s)", (tables.VERSION,))
            found = self._columns_found(connection)
            versions: list[int] = []
            if found.get("pykafka_ledger") == tables.columns_of("pykafka_ledger"):
                versions = [
                    row[0] for row in _rows(connection, "SELECT version FROM pykafka_ledger")
                ]
            self._check_tables(found, versions)

    def _columns_found(self, connection: Any) -> dict[str, list[str]]:
        rows = _rows(
            connection,
            "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE c.relname = ANY(%s) AND c.relnamespace = current_schema()::regnamespace "
            "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum",
            (list(tables.NAMES),),
        )
        found: dict[str, list[str]] = {}
        for table, column in rows:
            found.setdefault(table, []).append(column)
        return found

    @contextmanager
    def _committing(self, connection: Any) -> Generator[None]:
        block = connection.transaction()  # While it is open, connection.commit() is refused.
        try:
            with _errors(self._psycopg, self._name):
                block.__enter__()
            with _closing(block, self._psycopg, self._name):
                number = self._transaction_number(connection)
                yield
                self._check_still_open(connection, number)
        except self._psycopg.Error as error:
            # The effect's own statements: their errors are the effect's, unless the server is gone.
            if connection.closed:
                raise LedgerUnavailableError(f"{self._name}: {error}") from error
            raise
        finally:
            if connection.closed:
                self._drop_connection()

    def _check_still_open(self, connection: Any, number: int) -> None:
        if self._transaction_number(connection) != number:
            raise UsageError(
                "the effect ended the ledger's transaction: what it committed may be done again. "
                "It writes, the ledger commits"
            )

    def _transaction_number(self, connection: Any) -> int:
        with _errors(self._psycopg, self._name):
            number: int = _rows(connection, "SELECT pg_current_xact_id()::text::bigint")[0][0]
            return number

    def _begin(self, connection: Any, group: str) -> SqlTransaction:
        return PostgresTransaction(
            self._psycopg, connection, self._name, group, self._retention, self._clock()
        )


class PostgresTransaction(SqlTransaction):
    """Statements go through cursors of their own, whatever the effect sets on the connection."""

    def __init__(
        self,
        psycopg: ModuleType,
        connection: Any,
        name: str,
        group: str,
        retention: Retention,
        now_ms: int,
    ) -> None:
        self._psycopg, self._name = psycopg, name
        super().__init__(connection, group, retention, now_ms)

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _errors(self._psycopg, self._name):
            return _rows(self._connection, statement.replace("?", "%s"), values)

    def _run(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with _errors(self._psycopg, self._name), self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows)

    def _select_group(self, group: str) -> list[tuple[Any, ...]]:
        query = "SELECT group_key, ids_count FROM pykafka_groups WHERE name = ? FOR UPDATE"
        return self._rows(query, (group,))

    def _insert_ids(self, group_key: int, ids: list[bytes]) -> tuple[set[bytes], int, int]:
        source, values = "unnest(?::bytea[]) AS id", [ids]
        if len(ids) >= COPY_IDS_MIN:
            self._stage(ids)
            source, values = STAGING, []
        rows = self._rows(
            f"INSERT INTO pykafka_ids (group_key, id) SELECT ?, id FROM {source} "
            "ON CONFLICT DO NOTHING RETURNING seq, id",
            [group_key, *values],
        )
        numbers = [seq for seq, _ in rows]
        new = {value for _, value in rows}
        return new, min(numbers, default=0), max(numbers, default=0)

    def _stage(self, ids: list[bytes]) -> None:
        with _errors(self._psycopg, self._name), self._connection.cursor() as cursor:
            cursor.execute(
                f"CREATE TEMPORARY TABLE IF NOT EXISTS {STAGING} (id bytea) ON COMMIT DELETE ROWS"
            )
            cursor.execute(f"TRUNCATE {STAGING}")
            with cursor.copy(f"COPY {STAGING} (id) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["bytea"])
                for value in ids:
                    copy.write_row((value,))


def _psycopg() -> ModuleType:
    try:
        import psycopg
    except ImportError as error:
        raise ImportError(
            "PostgresLedger needs psycopg 3: pip install 'pykafka_core[postgres]'"
        ) from error
    return psycopg


def _name(psycopg: ModuleType, conninfo: str) -> str:
    """What errors call the database: never its password."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(conninfo)
    except (psycopg.Error, TypeError, AttributeError) as error:
        raise ConfigurationError(
            [f"conninfo is no connection string of PostgreSQL: {error}"]
        ) from error
    return f"PostgreSQL {parts.get('dbname', '')}@{parts.get('host', '')}"


@contextmanager
def _errors(psycopg: ModuleType, name: str) -> Generator[None]:
    """The driver's errors as the ledger's."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise LedgerUnavailableError(f"{name}: {error}") from error
    except psycopg.Error as error:
        raise LedgerError(f"{name}: {error}") from error


@contextmanager
def _closing(block: Any, psycopg: ModuleType, name: str) -> Generator[None]:
    """Leave a transaction block that was entered; the commit's errors are the ledger's."""
    try:
        yield
    except BaseException as error:
        block.__exit__(type(error), error, error.__traceback__)
        raise
    with _errors(psycopg, name):
        block.__exit__(None, None, None)


def _rows(connection: Any, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    from psycopg.rows import tuple_row

    with connection.cursor(row_factory=tuple_row) as cursor:
        rows: list[tuple[Any, ...]] = cursor.execute(statement, values or None).fetchall()
        return rows
