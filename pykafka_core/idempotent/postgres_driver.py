"""Use of psycopg by the ledger: separate cursors, and conversion of the driver's errors."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from pykafka_core.errors import ConfigurationError, LedgerError, LedgerUnavailableError

OF_DRIVER: Final = frozenset({"prepare_threshold", "context", "row_factory", "cursor_factory"})
"""Options of ``psycopg.connect`` that are not part of a connection string."""
OWN: Final = frozenset({"autocommit"})
"""Options that the ledger itself sets."""

_PREPARED: Final = frozenset({"26000", "42P05"})
"""Error codes: a prepared statement does not exist, or already exists."""
_POOLER: Final = (
    "a pooler such as PgBouncer in transaction mode gives each transaction another connection to the server, where "
    "its prepared statements do not exist: PostgresLedger(..., connect={'prepare_threshold': None}) prepares none"
)
_FRAMEWORK: Final = (
    "An effect writes and the ledger commits. The guides docs/guides/ledgers/sqlalchemy.md and "
    "docs/guides/ledgers/django.md have the lines with which both write in the ledger's transaction."
)
_REFUSED: Final = ("forbidden within a Transaction context", "connection.transaction() context")
"""Texts of the driver's errors on a commit, a rollback or a change of autocommit."""


def driver() -> ModuleType:
    """Import psycopg.

    Raises:
        ImportError: psycopg 3 is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise ImportError(
            "PostgresLedger needs psycopg 3: pip install 'pykafka_core[postgres]'"
        ) from error
    return psycopg


def name_of(psycopg: ModuleType, conninfo: str, connect: Mapping[str, Any]) -> str:
    """Return the name of the database for errors, without the password.

    Raises:
        ConfigurationError: The string or an option is invalid.
    """
    if refused := sorted(OWN & connect.keys()):
        raise ConfigurationError([f"connect cannot have {refused[0]}: the ledger sets it"])
    parameters = {name: value for name, value in connect.items() if name not in OF_DRIVER}
    try:
        parts = psycopg.conninfo.conninfo_to_dict(conninfo) | parameters
        psycopg.conninfo.make_conninfo(**parts)  # rejects unknown options
    except (psycopg.Error, TypeError, AttributeError) as error:
        raise ConfigurationError(
            [
                f"conninfo is not a connection string of PostgreSQL, or connect has an unknown option: {error}"
            ]
        ) from error
    return f"PostgreSQL {parts.get('dbname', '')}@{parts.get('host', '')}"


def own_cursor(connection: Any, *, binary: bool = False) -> Any:
    """Return a cursor with server-side parameters and tuple rows, whatever the connection's."""
    from psycopg import Cursor
    from psycopg.pq import Format
    from psycopg.rows import tuple_row

    cursor = Cursor(connection, row_factory=tuple_row)
    cursor.format = Format.BINARY if binary else Format.TEXT
    return cursor


def query_rows(
    connection: Any, statement: str, values: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Run a statement and return all rows."""
    with own_cursor(connection) as cursor:
        rows: list[tuple[Any, ...]] = cursor.execute(statement, values or None).fetchall()
        return rows


@contextmanager
def driver_errors(psycopg: ModuleType, name: str) -> Generator[None]:
    """Convert the driver's errors to the ledger's."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate in _PREPARED:  # 26000 is an OperationalError, too
            raise LedgerError(f"{name}: {error}; {_POOLER}") from error
        if isinstance(error, psycopg.OperationalError):
            raise LedgerUnavailableError(f"{name}: {error}") from error
        raise LedgerError(f"{name}: {error}") from error


def advise(psycopg: ModuleType, error: BaseException) -> None:
    """Add advice to an effect's error if the ledger or a pooler caused it.

    The error may come from a framework, with a driver error as its cause. Ledger errors already
    contain the advice.
    """
    if isinstance(error, LedgerError):
        return
    for one in _chain(error):
        if not isinstance(one, psycopg.Error):
            continue
        if one.sqlstate in _PREPARED:
            error.add_note(_POOLER)
            return
        if any(text in str(one) for text in _REFUSED):
            error.add_note(_FRAMEWORK)
            return


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__
