"""SQL statements as effects in SQLite: rows are inserted into a temporary table, in slices."""

import datetime
import re
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pykafka_core.errors import UsageError
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
    keywords=KEYWORDS | {"REPLACE"},
    spaces=" \t\n\r\f",
    line_end=re.compile("\n"),
    bracket=re.compile(r"\*/"),
)
_TOKEN: Final = re.compile(
    r"""'(?:[^']|'')*+'? | `(?:[^`]|``)*+`? | \[[^\]]*\]? | --[^\n]* | /\*(?:.*?\*/|.*)"""
    r"""| "(?P<name>(?:[^"]|"")*+)(?P<end>"?)""",
    re.DOTALL | re.VERBOSE,
)
"""Matches double-quoted names, and text in which a double quote has another meaning."""

_TABLE: Final = f"temp.{ROWS}"
_VIEW: Final = f"temp.{STAGED}"
ROWID: Final = "ROWID"
"""SQLite's spelling in authorizer calls, whatever the statement's. `_Guard` rejects the view's."""

_SLICE: Final = 10_000
"""Number of rows that are Python objects at a time."""

Values = Callable[[Any, Any], Sequence[object]]
"""Converts a field and an array (not chunked) of its values to SQLite's values."""


@dataclass(frozen=True)
class SQLiteStatement:
    """An effect: see `SQLiteLedger.statement`. It can be pickled."""

    sql: str

    def __post_init__(self) -> None:
        checked_sql(self.sql, _LANGUAGE)

    def __call__(self, connection: Any, table: Any) -> None:
        """Stage the rows of a ``pyarrow.Table`` and run the statement in the open transaction."""
        # SQLite compares names after converting only ASCII letters to lower case.
        names = checked_columns(table, lambda name: name.encode().lower().decode())
        forms = [_form(field) for field in table.schema]
        columns = [
            f"{quoted(_declared(name))} {kind}"
            for name, (kind, _) in zip(names, forms, strict=True)
        ]
        cursor = connection.cursor()
        cursor.row_factory = None
        insert = f"INSERT INTO {_TABLE} VALUES ({', '.join('?' * len(columns))})"
        with _staged(connection, cursor, columns):
            cursor.executemany(insert, _rows(table, [values for _, values in forms]))
            with noting(self.sql), _naming_staged():
                for _ in cursor.execute(_only_names_in_double_quotes(self.sql)):
                    pass  # a statement that returns rows is only complete after the last one


def _declared(name: str) -> str:
    """Return a column's name; one that equals `ROWID` is lower-cased to distinguish it."""
    return name.lower() if name == ROWID else name


def _only_names_in_double_quotes(sql: str) -> str:
    """Replace double quotes by backticks: SQLite treats unknown names in double quotes as text."""

    def in_backticks(token: re.Match[str]) -> str:
        name, end = token.group("name", "end")
        if not end:
            return token[0]
        name = name.replace('""', '"').replace("`", "``")
        return f"`{name}`"

    return _TOKEN.sub(in_backticks, sql)


@contextmanager
def _staged(connection: Any, cursor: Any, columns: Sequence[str]) -> Generator[None]:
    """Create the temporary table and its view; drop them even if the effect catches an error."""
    cursor.execute(f"CREATE TEMPORARY VIEW {STAGED} AS SELECT * FROM {_TABLE}")
    cursor.execute(f"CREATE TEMPORARY TABLE {ROWS} ({', '.join(columns)})")
    try:
        yield
    finally:
        if connection.in_transaction:
            cursor.execute(f"DROP VIEW {_VIEW}")
            cursor.execute(f"DROP TABLE {_TABLE}")


@contextmanager
def _naming_staged() -> Generator[None]:
    """Convert SQLite's errors about the view to errors with advice."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if str(error) == f"cannot modify {STAGED} because it is a view":
            raise changes_staged() from error
        if str(error) == f"access to {_VIEW}.{ROWID} is prohibited":
            raise UsageError(
                f"{STAGED} has no rowid in SQLite: give its rows a column that numbers them, such as the offset"
            ) from error
        raise


def _rows(table: Any, forms: Sequence[Values]) -> Iterator[tuple[object, ...]]:
    for batch in table.to_batches(max_chunksize=_SLICE):
        columns = [
            _values(*parts) for parts in zip(forms, table.schema, batch.columns, strict=True)
        ]
        yield from zip(*columns, strict=True)


def _values(form: Values, field: Any, column: Any) -> Sequence[object]:
    try:
        return form(field, column)
    except UnicodeDecodeError as error:
        raise UsageError(f"column {field.name!r} has text that is not UTF-8: {error}") from None


def _form(field: Any) -> tuple[str, Values]:
    """Return the column type for a field, and the function that converts its values.

    Raises:
        UsageError: SQLite has no such type; the message names the column and gives advice.
    """
    from pyarrow import types

    from pykafka_core.idempotent.postgres import binary_copy
    from pykafka_core.idempotent.statements import headers

    kind = field.type
    is_whole = types.is_integer(kind) and not types.is_uint64(kind)
    if types.is_boolean(kind) or is_whole:
        return "INTEGER", _as_they_are
    if types.is_float32(kind) or types.is_float64(kind):
        return "REAL", _numbers
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "BLOB", _as_they_are
    if types.is_string(kind) or types.is_large_string(kind):
        return "TEXT", _as_they_are
    if types.is_decimal128(kind):
        return "TEXT", _decimals
    if types.is_date32(kind):
        return "TEXT", _dates
    if types.is_timestamp(kind):
        return "TEXT", _times
    if headers.are_headers(kind):
        return "TEXT", lambda _, column: headers.as_json(column)
    raise binary_copy.no_form(field, "SQLite")


def _as_they_are(_: Any, column: Any) -> Sequence[object]:
    values: list[object] = column.to_pylist()
    return values


def _numbers(field: Any, column: Any) -> Sequence[object]:
    import pyarrow.compute as pc

    if pc.any(pc.is_nan(column)).as_py():
        raise UsageError(
            f"column {field.name!r} has a NaN, which SQLite would store as NULL; replace it"
        )
    return _as_they_are(field, column)


def _decimals(_: Any, column: Any) -> Sequence[object]:
    return [None if value is None else f"{value:f}" for value in column.to_pylist()]


def _dates(field: Any, column: Any) -> Sequence[object]:
    import pyarrow as pa

    _check_range(field, column.cast(pa.int32()), _DAYS)
    return _as_they_are(field, column.cast(pa.string()))


def _times(field: Any, column: Any) -> Sequence[object]:
    import pyarrow as pa

    try:
        exact = column.cast(pa.timestamp("us", field.type.tz)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"column {field.name!r}: times are staged in microseconds, and these would change; "
            f"cast the column to timestamp('us'): {error}"
        ) from None
    _check_range(field, exact.cast(pa.int64()), _MICROSECONDS)
    return _as_they_are(field, exact.cast(pa.string()))


# Inclusive. Years outside have text of another length, which does not sort correctly.
_DAYS: Final = tuple(
    date.toordinal() - datetime.date(1970, 1, 1).toordinal()
    for date in (datetime.date.min, datetime.date.max)
)
_MICROSECONDS: Final = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)


def _check_range(field: Any, numbers: Any, bounds: tuple[int, ...]) -> None:
    import pyarrow.compute as pc

    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not (bounds[0] <= found["min"] and found["max"] <= bounds[1]):
        raise UsageError(
            f"column {field.name!r} has a time outside of the years 1 to 9999; filter it"
        )
