"""SQL statements as effects in PostgreSQL: rows are sent to the server by binary COPY."""

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from pykafka_core.errors import UsageError
from pykafka_core.idempotent.postgres_driver import own_cursor
from pykafka_core.idempotent.statements.checks import (
    KEYWORDS,
    ROWS,
    STAGED,
    Language,
    changes_staged,
    checked_columns,
    checked_sql,
    noting,
    quoted,
)

_LANGUAGE: Final = Language(
    keywords=KEYWORDS | {"MERGE", "CALL"},
    spaces=" \t\n\r\f\v",
    line_end=re.compile("[\r\n]"),
    bracket=re.compile(r"/\*|\*/"),
)
_TABLE: Final = f"pg_temp.{ROWS}"
_VIEW: Final = f"pg_temp.{STAGED}"
_KEPT: Final = "pg_temp.pykafka_staged"
"""The view's name between two parts. Reusing it avoids new objects, with locks until the commit."""

_HEADER: Final = "pg_temp.pykafka_header"
"""The composite type of a separate table, so that the commit drops it, too."""

_REFUSALS: Final = frozenset({"55000", "42809", "0A000"})
"""Error codes for a read-only view: not in prerequisite state, wrong type, not supported."""

_SYSTEM_COLUMNS: Final = frozenset({"tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"})
_NAME_BYTES_MAX: Final = 63
"""The server would truncate longer names."""


@dataclass(frozen=True)
class PostgresStatement:
    """An effect: see `PostgresLedger.statement`. It can be pickled."""

    sql: str

    def __post_init__(self) -> None:
        checked_sql(self.sql, _LANGUAGE)

    def __call__(self, connection: Any, table: Any) -> None:
        """Stage the rows of a ``pyarrow.Table`` and run the statement in the open transaction."""
        columns = _columns(table)
        # Binary results make psycopg use the extended protocol, which rejects a second statement.
        with own_cursor(connection, binary=True) as cursor:
            _stage(connection, cursor, table, columns)
            with noting(self.sql), _naming_staged():
                # A prepared statement would refer to a table that is dropped.
                cursor.execute(self.sql, prepare=False)
        _define(connection, [f"TRUNCATE {_TABLE}", f"ALTER VIEW {_VIEW} RENAME TO pykafka_staged"])


def _define(connection: Any, statements: Iterable[str]) -> None:
    """Run statements in one round trip."""
    connection.execute("; ".join(statements), prepare=False)


@contextmanager
def _naming_staged() -> Generator[None]:
    """Convert the server's errors on changes to the view to an error with advice."""
    from psycopg import Error

    try:
        yield
    except Error as error:
        if error.sqlstate in _REFUSALS and STAGED in (error.diag.message_primary or ""):
            raise changes_staged() from error
        raise


def _columns(table: Any) -> list[str]:
    """Return name and type of each column."""
    from pykafka_core.idempotent.postgres import binary_copy
    from pykafka_core.idempotent.statements import headers

    columns = []
    for name, field in zip(checked_columns(table, str), table.schema, strict=True):
        if len(name.encode()) > _NAME_BYTES_MAX:
            raise UsageError(
                f"column {name!r}: PostgreSQL's names have at most {_NAME_BYTES_MAX} bytes; rename it"
            )
        if name in _SYSTEM_COLUMNS:
            raise UsageError(
                f"column {name!r}: PostgreSQL has one of this name in every table; rename it"
            )
        are_headers = headers.are_headers(field.type)
        kind = f"{_HEADER}[]" if are_headers else binary_copy.postgres_type(field)
        columns.append(f"{quoted(name)} {kind}")
    return columns


def _stage(connection: Any, cursor: Any, table: Any, columns: list[str]) -> None:
    """Fill the temporary table; reuse table and view of the previous part if the columns match."""
    from pykafka_core.idempotent.postgres import binary_copy

    digest = sha256("\n".join(columns).encode()).hexdigest()
    # Rows and names are UTF-8 for the rest of the transaction, for the server and for psycopg.
    _, found = cursor.execute(
        f"SELECT set_config('client_encoding', 'UTF8', true), obj_description(to_regclass('{_KEPT}'), 'pg_class')"
    ).fetchone()
    if found == digest:
        _define(connection, [f"ALTER VIEW {_KEPT} RENAME TO {STAGED}"])
    else:
        _define(connection, _definitions(table, columns, digest))
    is_found, type_oid = cursor.execute(
        f"SELECT to_regclass('{STAGED}') = to_regclass('{_VIEW}'), to_regtype('{_HEADER}')::oid"
    ).fetchone()
    if not is_found:
        raise UsageError(
            f"{STAGED} is another table than the temporary one: take pg_temp out of search_path, or put it first"
        )
    with cursor.copy(f"COPY {_TABLE} FROM STDIN (FORMAT binary)") as copy:
        for piece in binary_copy.copy_stream(_copied(table, type_oid or 0)):
            copy.write(piece)


def _definitions(table: Any, columns: list[str], digest: str) -> list[str]:
    """Return statements that drop old tables and create table and view. The commit drops them."""
    from pykafka_core.idempotent.statements import headers

    header = f"CREATE TEMPORARY TABLE pykafka_header ({headers.FIELDS}) ON COMMIT DROP"
    has_headers = any(headers.are_headers(kind) for kind in table.schema.types)
    return [
        f"DROP TABLE IF EXISTS {_TABLE}, {_HEADER} CASCADE",
        *[header] * has_headers,
        f"CREATE TEMPORARY TABLE {ROWS} ({', '.join(columns)}) ON COMMIT DROP",
        # The cross join makes the view read-only; a view of a single table is updatable.
        f"CREATE TEMPORARY VIEW {STAGED} AS SELECT {ROWS}.* FROM {_TABLE}, (SELECT 1) AS no_table",
        f"COMMENT ON VIEW {_VIEW} IS '{digest}'",
    ]


def _copied(table: Any, type_oid: int) -> Any:
    """Return a reader of the rows, with headers as binary values in the server's format."""
    import pyarrow as pa

    from pykafka_core.idempotent.postgres import binary_copy
    from pykafka_core.idempotent.statements import headers

    are_headers = [headers.are_headers(kind) for kind in table.schema.types]
    schema = pa.schema(
        [
            pa.field(field.name, pa.large_binary()) if found else field
            for field, found in zip(table.schema, are_headers, strict=True)
        ]
    )

    def batches() -> Iterator[Any]:
        for batch in table.to_batches():
            for piece in binary_copy.slices(batch):
                columns = [
                    headers.as_arrays(field, column, type_oid) if found else column
                    for field, column, found in zip(
                        table.schema, piece.columns, are_headers, strict=True
                    )
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
