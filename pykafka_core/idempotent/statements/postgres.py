"""A statement as an effect in PostgreSQL: rows go to the server by binary COPY."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pykafka_core.errors import UsageError
from pykafka_core.idempotent.statements.checks import (
    KEYWORDS,
    STAGED,
    check_untouched,
    checked_columns,
    checked_sql,
    noting,
    quoted,
)

_KEYWORDS: Final = KEYWORDS | {"MERGE", "CALL"}
_TABLE: Final = f"pg_temp.{STAGED}"
_HEADER: Final = "pg_temp.pykafka_header"
_NAME_BYTES_MAX: Final = 63
"""The server would cut longer names off."""


@dataclass(frozen=True)
class PostgresStatement:
    """An effect: see `PostgresLedger.statement`. It can be pickled."""

    sql: str

    def __post_init__(self) -> None:
        checked_sql(self.sql, _KEYWORDS)

    def __call__(self, connection: Any, table: Any) -> None:
        """Stage the rows of a ``pyarrow.Table`` and run the statement, in the connection's transaction."""
        from psycopg.rows import tuple_row

        columns = _columns(table)
        # In binary, so that psycopg takes the extended protocol, in which the server refuses a second statement.
        with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
            has_headers = _stage(cursor, table, columns)
            with noting(self.sql):
                # Prepared, it would be bound to a table that is dropped.
                cursor.execute(self.sql, prepare=False)
            check_untouched(table.num_rows, _one(cursor, f"SELECT count(*) FROM {_TABLE}"))
            cursor.execute(f"DROP TABLE {_TABLE}")
            if has_headers:
                cursor.execute(f"DROP TYPE {_HEADER}")


def _columns(table: Any) -> list[str]:
    """Name and type of each column."""
    from pykafka_core.idempotent import pgcopy
    from pykafka_core.idempotent.statements import headers

    columns = []
    for name, field in zip(checked_columns(table, str), table.schema, strict=True):
        if len(name.encode()) > _NAME_BYTES_MAX:
            raise UsageError(
                f"column {name!r}: PostgreSQL's names have at most {_NAME_BYTES_MAX} bytes; rename it"
            )
        are_headers = headers.are_headers(field.type)
        kind = f"{_HEADER}[]" if are_headers else pgcopy.postgres_type(field)
        columns.append(f"{quoted(name)} {kind}")
    return columns


def _stage(cursor: Any, table: Any, columns: list[str]) -> bool:
    """Fill the temporary table; whether there is a type for headers now, too."""
    from pykafka_core.idempotent import pgcopy
    from pykafka_core.idempotent.statements import headers

    # Rows and names are UTF-8, whatever the session's text is. Until the transaction ends, as psycopg goes by it too.
    cursor.execute("SET LOCAL client_encoding = 'UTF8'")
    type_oid = 0
    if any(headers.are_headers(kind) for kind in table.schema.types):
        cursor.execute(f"CREATE TYPE {_HEADER} AS ({headers.FIELDS})")
        type_oid = _one(cursor, f"SELECT '{_HEADER}'::regtype::oid")
    cursor.execute(f"CREATE TEMPORARY TABLE {STAGED} ({', '.join(columns)}) ON COMMIT DROP")
    if not _one(cursor, f"SELECT to_regclass('{STAGED}') = to_regclass('{_TABLE}')"):
        raise UsageError(
            f"{STAGED} is another table than the temporary one: take pg_temp out of search_path, or put it first"
        )
    with cursor.copy(f"COPY {_TABLE} FROM STDIN (FORMAT binary)") as copy:
        for piece in pgcopy.copy_stream(_copied(table, type_oid)):
            copy.write(piece)
    return type_oid != 0


def _copied(table: Any, type_oid: int) -> Any:
    """A reader of the rows, whose headers are binary values in the server's form."""
    import pyarrow as pa

    from pykafka_core.idempotent import pgcopy
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
            for piece in pgcopy.slices(batch):
                columns = [
                    headers.as_arrays(field, column, type_oid) if found else column
                    for field, column, found in zip(
                        table.schema, piece.columns, are_headers, strict=True
                    )
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _one(cursor: Any, query: str) -> Any:
    return cursor.execute(query).fetchone()[0]
