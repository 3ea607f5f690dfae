"""A statement as the effect: it gets the unchanged rows, runs once for each call, and cannot end
the transaction.
"""

import datetime
import decimal
import json
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_core.errors import ConfigurationError, UsageError
from pykafka_core.idempotent import (
    PartitionKey,
    PostgresLedger,
    SQLiteLedger,
    StatementLedger,
)
from pykafka_core.idempotent.postgres import binary_copy
from tests.idempotent.databases import Database, PostgresDatabase, SQLiteDatabase, effects
from tests.idempotent.postgres.test_binary_copy import KINDS, TEXT, tables

KEY = PartitionKey(b"a" * 16, "orders", 0)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HEADER = st.fixed_dictionaries({"key": TEXT, "value": st.none() | st.binary()})
STAGEABLE = KINDS | {
    HEADERS: ("json", st.lists(st.none() | HEADER, max_size=3)),
    pa.large_list(HEADERS.value_type): ("json", st.lists(HEADER, max_size=3)),
}
INSERT = "INSERT INTO effects SELECT value FROM staged"
NO_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
)
NO_TEXT_HEADERS = pa.ListArray.from_arrays(
    [0, 1], pa.StructArray.from_arrays([NO_TEXT, pa.array([b""])], fields=list(HEADERS.value_type))
)

Ledger = PostgresLedger | SQLiteLedger


class Undo(Exception):
    """Rolls back a test's transaction."""


@contextmanager
def undone(ledger: Any) -> Iterator[Any]:
    """Yield the connection of a transaction that is rolled back."""
    with pytest.raises(Undo), ledger.transaction("g") as transaction:
        yield transaction.connection
        raise Undo


def values(*found: str | None) -> pa.Table:
    return pa.table({"value": pa.array(found, pa.string())})


def names_of(connection: Any, is_postgres: bool) -> list[str]:
    """Return the names of the existing temporary tables and types."""
    query = (
        "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() "
        "UNION SELECT typname FROM pg_type WHERE typnamespace = pg_my_temp_schema() "
        "EXCEPT SELECT o || n FROM unnest('{pykafka_rows,pykafka_staged,pykafka_header}'::text[]) n, "
        "unnest(ARRAY['', '_']) o"
        if is_postgres
        else "SELECT name FROM sqlite_temp_master WHERE name <> 'pykafka_transaction'"
    )
    return [name for (name,) in connection.execute(query).fetchall()]


def seen_by_postgres(connection: Any, ledger: PostgresLedger, rows: pa.Table) -> list[Any]:
    columns, found = [], []
    for field in rows.schema:
        name = f'"{field.name}"'
        is_nested = pa.types.is_nested(field.type)
        columns.append(f"{name} {STAGEABLE[field.type][0]}")
        found.append(f"to_json({name})" if is_nested else name)
    connection.execute(f"CREATE TEMPORARY TABLE kept (n serial, {', '.join(columns)})")
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    ledger.statement(f"INSERT INTO kept ({names}) SELECT {', '.join(found)} FROM staged")(
        connection, rows
    )
    with connection.cursor(binary=True) as cursor:
        return [row[1:] for row in cursor.execute("SELECT * FROM kept ORDER BY n").fetchall()]


def seen_by_sqlite(connection: Any, ledger: SQLiteLedger, rows: pa.Table) -> list[Any]:
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    connection.execute(f"CREATE TEMPORARY TABLE kept ({names})")
    ledger.statement("INSERT INTO kept SELECT * FROM staged")(connection, rows)
    found = connection.execute("SELECT * FROM kept ORDER BY rowid").fetchall()
    return [
        tuple(
            json.loads(value) if pa.types.is_nested(field.type) and value is not None else value
            for field, value in zip(rows.schema, row, strict=True)
        )
        for row in found
    ]


def in_postgres(value: Any) -> Any:
    """Return headers as `to_json` writes the array; other values unchanged."""
    return told(value, lambda data: "\\x" + data.hex())


def in_sqlite(value: Any) -> Any:
    match value:
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.datetime():
            utc = value.astimezone(datetime.UTC) if value.tzinfo else value
            return utc.replace(tzinfo=None).isoformat(" ", "microseconds")
        case datetime.date():
            return value.isoformat()
    return told(value, lambda data: data.hex().upper())


def told(value: Any, text: Callable[[bytes], str]) -> Any:
    if not isinstance(value, list):
        return value
    return [
        header and header | {"value": None if (data := header["value"]) is None else text(data)}
        for header in value
    ]


@pytest.fixture
def ledger(database: Database) -> Iterator[Any]:
    with database.ledger() as ledger:
        yield ledger


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables(STAGEABLE))
def test_every_value_is_staged_unchanged(ledger: Ledger, rows: pa.Table) -> None:
    given_rows = [tuple(row.values()) for row in rows.to_pylist()]
    with undone(ledger) as connection:
        if isinstance(ledger, PostgresLedger):
            connection.execute("SET LOCAL TimeZone = 'UTC'")
            found = seen_by_postgres(connection, ledger, rows)
            assert found == [tuple(map(in_postgres, row)) for row in given_rows]
        else:
            found = seen_by_sqlite(connection, ledger, rows)
            assert found == [tuple(map(in_sqlite, row)) for row in given_rows]
        assert "staged" not in names_of(connection, isinstance(ledger, PostgresLedger))


@pytest.mark.parametrize("kind", STAGEABLE)
def test_column_has_its_type_even_without_rows(ledger: Ledger, kind: Any) -> None:
    rows = pa.table({"x": pa.array([], kind)})
    with undone(ledger) as connection:
        if isinstance(ledger, PostgresLedger):
            query = (
                "INSERT INTO kinds SELECT format_type(atttypid, NULL) FROM pg_attribute "
                "WHERE attrelid = 'staged'::regclass AND attnum = 1"
            )
            wanted = STAGEABLE[kind][0].replace("json", "pykafka_header[]")
            wanted = wanted.replace("timestamptz", "timestamp with time zone")
            wanted = {"timestamp": "timestamp without time zone"}.get(wanted, wanted)
        else:
            query = "INSERT INTO kinds SELECT type FROM pragma_table_info('staged', 'temp')"
            wanted = sqlite_type(kind)
        connection.execute("CREATE TEMPORARY TABLE kinds (name text)")
        ledger.statement(query)(connection, rows)
        assert connection.execute("SELECT name FROM kinds").fetchall() == [(wanted,)]


def sqlite_type(kind: Any) -> str:
    types = pa.types
    if types.is_boolean(kind) or types.is_integer(kind):
        return "INTEGER"
    if types.is_floating(kind):
        return "REAL"
    is_binary = types.is_binary(kind) or types.is_large_binary(kind)
    return "BLOB" if is_binary or types.is_fixed_size_binary(kind) else "TEXT"


def test_functions_of_sqlite_accept_staged_values(tmp_path: Path) -> None:
    time = datetime.datetime(2026, 11, 25, 12, 30, 0, 250_000)
    rows = pa.table(
        {
            "time": pa.array([time], pa.timestamp("us", "UTC")),
            "day": [time.date()],
            "amount": [decimal.Decimal("0.00000001")],
            "headers": pa.array([[{"key": "id", "value": b"\xff"}]], HEADERS),
        }
    )
    with SQLiteLedger(tmp_path / "a.db") as ledger, undone(ledger) as connection:
        connection.execute("CREATE TABLE found (a, b, c, d)")
        ledger.statement(
            "INSERT INTO found SELECT strftime('%s %f', time), date(day, '+1 day'), amount, h.value ->> 'value' "
            "FROM staged, json_each(headers) AS h WHERE h.value ->> 'key' = 'id'"
        )(connection, rows)
        assert connection.execute("SELECT * FROM found").fetchall() == [
            ("1795609800 00.250", "2026-11-26", "0.00000001", "FF")
        ]


def test_headers_are_rows_in_postgres(postgres_dsn: str) -> None:
    sent = [[{"key": "id", "value": b"1"}, {"key": "id", "value": b"2"}], None, []]
    rows = pa.table({"offset": [7, 8, 9], "headers": pa.array(sent, HEADERS)})
    with PostgresLedger(postgres_dsn) as ledger, undone(ledger) as connection:
        connection.execute("CREATE TABLE found (place bigint, value bytea)")
        ledger.statement(
            "INSERT INTO found SELECT \"offset\", h.value FROM staged, unnest(headers) AS h WHERE h.key = 'id'"
        )(connection, rows)
        assert connection.execute("SELECT * FROM found").fetchall() == [(7, b"1"), (7, b"2")]


def test_missing_header_differs_from_one_without_key_and_value(postgres_dsn: str) -> None:
    sent = [[None, {"key": "a", "value": None}], [{"key": None, "value": None}]]
    rows = pa.table({"headers": pa.array(sent, HEADERS)})
    with PostgresLedger(postgres_dsn) as ledger, undone(ledger) as connection:
        connection.execute("CREATE TABLE found (headers json)")
        ledger.statement("INSERT INTO found SELECT to_json(headers) FROM staged")(connection, rows)
        assert connection.execute("SELECT * FROM found").fetchall() == [(row,) for row in sent]


def test_each_call_starts_with_nothing_staged(database: Database, ledger: Ledger) -> None:
    """The statement runs for each part of a batch, even with other columns; ids and marks commit
    together with all parts.
    """
    effect = ledger.statement(INSERT)
    other = ledger.statement("INSERT INTO effects SELECT 'offset ' || \"offset\" FROM staged;")
    with ledger.transaction("g") as transaction:
        transaction.advance({KEY: 6})
        effect(transaction.connection, values("a", "b"))
        effect(transaction.connection, values())
        other(transaction.connection, pa.table({"offset": [5], "headers": pa.array([[]], HEADERS)}))
        effect(transaction.connection, values("c").slice(0))
        assert names_of(transaction.connection, isinstance(ledger, PostgresLedger)) == []
    assert effects(database) == ["a", "b", "c", "offset 5"]
    with ledger.transaction("g") as transaction:  # no rows are left after the commit, either
        query = (
            "SELECT typname FROM pg_type WHERE typnamespace = pg_my_temp_schema()"
            if isinstance(ledger, PostgresLedger)
            else "SELECT name FROM sqlite_temp_master WHERE name <> 'pykafka_transaction'"
        )
        assert transaction.connection.execute(query).fetchall() == []


def test_table_of_the_user_called_staged_is_visible_between_calls(
    ledger: Ledger, staged_of_the_user: str
) -> None:
    effect = ledger.statement("SELECT value FROM staged")
    with ledger.transaction("g") as transaction:
        for _ in range(2):
            effect(transaction.connection, values("a"))
            found = transaction.connection.execute("SELECT value FROM staged").fetchall()
            assert found == [("mine",)]


def test_call_rolled_back_to_a_savepoint_does_not_affect_others(postgres_dsn: str) -> None:
    database = PostgresDatabase(postgres_dsn)
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        effect = ledger.statement(INSERT)
        connection = transaction.connection
        for before in ([], ["a"]):
            for value in before:
                effect(connection, values(value))
            with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
                ledger.statement("SELECT 1 / 0 FROM staged")(connection, values("b"))
            effect(connection, values("c"))
    assert effects(database) == ["a", "c", "c"]


def test_statement_is_planned_for_the_columns_of_each_call(ledger: Ledger) -> None:
    """psycopg prepares a statement that ran five times, and the plan is for the columns of that
    table.
    """
    effect = ledger.statement("SELECT * FROM staged")
    with ledger.transaction("g") as transaction:
        for rows in [values("a")] * 8 + [pa.table({"other": [1]})]:
            effect(transaction.connection, rows)


def test_a_statement_with_results_runs_to_its_end(tmp_path: Path) -> None:
    """SQLite computes a row, with calls of the user's functions, only when it is fetched."""
    noted: list[str] = []

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "a.db")
        connection.create_function("note", 1, noted.append)
        return connection

    with SQLiteLedger(connect) as ledger, ledger.transaction("g") as transaction:
        ledger.statement("SELECT note(value) FROM staged")(
            transaction.connection, values("a", "b", "c")
        )
    assert noted == ["a", "b", "c"]


def test_text_is_the_same_in_a_session_of_another_encoding(postgres_dsn: str) -> None:
    """Rows are sent as UTF-8, but the server reads them in the encoding of the session."""
    database = PostgresDatabase(postgres_dsn)
    with PostgresLedger(f"{postgres_dsn} client_encoding=LATIN1") as ledger:
        with ledger.transaction("g") as transaction:
            effect = ledger.statement("INSERT INTO effects SELECT 'ü' || value FROM staged")
            effect(transaction.connection, values("é", "\u20ac").append_column("€", [[1, 2]]))
        with ledger.transaction("g") as transaction:
            assert transaction.connection.info.encoding == "iso8859-1"
    assert effects(database) == ["üé", "ü\u20ac"]


def test_failed_statement_leaves_no_changes(database: Database, ledger: Ledger) -> None:
    """The batch is processed when it is delivered again."""
    effect = ledger.statement(INSERT)
    database.run("CREATE UNIQUE INDEX once ON effects (value)")

    def process(rows: pa.Table) -> None:
        with ledger.transaction("g") as transaction:
            assert transaction.claim([b"id"]) == [True]
            transaction.advance({KEY: 1})
            effect(transaction.connection, rows)

    with pytest.raises((psycopg.errors.UniqueViolation, sqlite3.IntegrityError)) as failure:
        process(values("a", "a"))
    assert failure.value.__notes__ == [f"The effect is one statement: {INSERT}"]
    assert effects(database) == []
    process(values("a"))
    assert effects(database) == ["a"]
    with ledger.transaction("g") as transaction:
        assert transaction.marks() == {KEY: 1}


def test_conflict_that_rolls_back_in_sqlite_leaves_no_changes(tmp_path: Path) -> None:
    """OR ROLLBACK ends the transaction without a ROLLBACK statement that could be rejected."""
    database = SQLiteDatabase(tmp_path / "a.db")
    database.run("CREATE UNIQUE INDEX once ON effects (value)")
    with database.ledger() as ledger:
        effect = ledger.statement("INSERT OR ROLLBACK INTO effects SELECT value FROM staged")
        with pytest.raises(sqlite3.IntegrityError), ledger.transaction("g") as transaction:
            transaction.claim([b"id"])
            transaction.advance({KEY: 1})
            effect(transaction.connection, values("a", "a"))
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}
            assert transaction.claim([b"id"]) == [True]
            effect(transaction.connection, values("a"))
    assert effects(database) == ["a"]


def test_effect_can_be_pickled_for_another_process(database: Database, ledger: Ledger) -> None:
    statements: StatementLedger = ledger
    effect = pickle.loads(pickle.dumps(statements.statement(INSERT)))
    with ledger.transaction("g") as transaction:
        effect(transaction.connection, values("a"))
    assert effects(database) == ["a"]


NAMES = ["Key", "select", 'a "quoted" name', "a; DROP TABLE effects", "naïve", "staged", "%s", " "]


def test_column_names_are_used_unchanged(database: Database, ledger: Ledger) -> None:
    rows = pa.table({name: [f"value of {name}"] for name in NAMES})
    for name in NAMES:
        quoted = name.replace('"', '""')
        effect = ledger.statement(f'INSERT INTO effects SELECT "{quoted}" FROM staged')
        with ledger.transaction("g") as transaction:
            effect(transaction.connection, rows)
    assert effects(database) == sorted(f"value of {name}" for name in NAMES)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (pa.table({"odd": pa.array([1], pa.uint64())}), "'odd' .*uint64.*leave it out or cast"),
        (pa.table({"odd": [[1]]}), "'odd' .*list.*leave it out or .*to_json"),
        (pa.table({"odd": [[{"key": "a"}]]}), "'odd' .*list.*leave it out or .*to_json"),
        (pa.table({"odd": [[{"key": b"a", "value": b"b"}]]}), "'odd' .*list"),
        (pa.table({"odd": [[{"value": b"a", "key": "b"}]]}), "'odd' .*list"),
        (pa.table({"odd": [None]}), "'odd' .*null.*leave it out or cast"),
        (pa.table({"odd": pa.array([1.5], pa.float16())}), "'odd' .*halffloat.*cast"),
        (pa.table({"odd": pa.array([1], pa.time64("us"))}), "'odd' .*time64"),
        (pa.table([[1], [2]], ["a", "a"]), "two columns are called 'a' and 'a': rename one"),
        (pa.table({"": [1]}), "a column cannot be called ''"),
        (pa.table({"a\0": [1]}), "a column cannot be called 'a"),
        (pa.table({}), "no columns"),
        ([{"a": 1}], "pyarrow.Table, not list"),
        (pa.table({"odd": pa.array([1], pa.timestamp("ns"))}), r"'odd'.*timestamp\('us'\)"),
    ],
)
def test_value_that_cannot_be_staged_is_rejected_by_name_and_nothing_is_changed(
    database: Database, ledger: Ledger, rows: Any, says: str
) -> None:
    effect = ledger.statement("INSERT INTO effects VALUES ('done')")
    with pytest.raises(UsageError, match=says), ledger.transaction("g") as transaction:
        transaction.advance({KEY: 1})
        effect(transaction.connection, rows)
    assert effects(database) == []
    with ledger.transaction("g") as transaction:
        assert transaction.marks() == {}
        assert names_of(transaction.connection, isinstance(ledger, PostgresLedger)) == []


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (values("fine", "a\0b"), "'value' has text with a NUL"),
        (
            pa.table({"h": pa.array([[{"key": "a\0", "value": None}]], HEADERS)}),
            r"'h\.key' has text with a NUL",
        ),
        (pa.table({"n" * 64: [1]}), "at most 63 bytes"),
        (pa.table({"ï" * 32: [1]}), "at most 63 bytes"),
        (pa.table({"ctid": [1]}), "'ctid': .* in every table; rename it"),
        (pa.table({"xmin": [1]}), "'xmin': .* in every table; rename it"),
        (pa.table({"tableoid": [1]}), "'tableoid': .* in every table; rename it"),
    ],
)
def test_value_that_postgres_cannot_hold_is_rejected(
    postgres_dsn: str, rows: Any, says: str
) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        effect = ledger.statement("SELECT 1")
        with pytest.raises(UsageError, match=says), ledger.transaction("g") as transaction:
            effect(transaction.connection, rows)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (pa.table({"x": [1.5, float("nan")]}), "'x' has a NaN"),
        (pa.table({"x": pa.array([2**40], pa.timestamp("s"))}), "'x' .*outside of the years"),
        (pa.table({"x": pa.array([-(2**31)], pa.date32())}), "'x' .*outside of the years"),
        (pa.table({"x": pa.array([-62135596801], pa.timestamp("s"))}), "outside of the years"),
        (pa.table({"x": pa.array([253402300800], pa.timestamp("s"))}), "outside of the years"),
        (pa.table({"Key": [1], "KEY": [2]}), "two columns are called 'Key' and 'KEY'"),
        (pa.table({"x": NO_TEXT}), "'x' has text that is not UTF-8"),
        (pa.table({"x": NO_TEXT_HEADERS}), "'x' has text that is not UTF-8"),
    ],
)
def test_value_that_sqlite_would_change_is_rejected(tmp_path: Path, rows: Any, says: str) -> None:
    with SQLiteLedger(tmp_path / "a.db") as ledger:
        effect = ledger.statement("SELECT 1")
        with pytest.raises(UsageError, match=says), ledger.transaction("g") as transaction:
            effect(transaction.connection, rows)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "  \n",
        ";",
        "-- INSERT",
        "/* INSERT */",
        "COMMIT",
        "commit; INSERT INTO effects VALUES (1)",
        "/* x */ -- y\n END",
        "/* INSERT",
        "/*/ INSERT",
        "(INSERT)",
        " " * 100_000 + "(",
        "-" * 100_000,
        "/*" * 100_000,
        "/**/" * 100_000,
        "-- \n" * 100_000 + "(SELECT value FROM staged)",
        "ROLLBACK TO a",
        "ABORT",
        "BEGIN",
        "START TRANSACTION",
        "SAVEPOINT a",
        "PREPARE TRANSACTION 'a'",
        "SET search_path = a",
        "CREATE TABLE staged (a text)",
        "DROP TABLE effects",
        "PRAGMA synchronous = OFF",
        "COPY effects FROM STDIN",
        "INSERT_ INTO effects",
        "INSERT\0",
        b"INSERT INTO effects VALUES (1)",
        None,
    ],
)
def test_other_kinds_of_statements_are_rejected_when_given(ledger: Ledger, sql: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"a statement (begins with|is text)"):
        ledger.statement(sql)


def test_comment_ends_where_the_database_ends_it(tmp_path: Path, postgres_dsn: str) -> None:
    """The statement follows the comment, and its first word decides whether it is allowed."""
    returned = "-- totals\rINSERT INTO effects VALUES (1)\nDROP TABLE effects"
    nested = "/* /* */ INSERT */ COMMIT"
    with SQLiteLedger(tmp_path / "a.db") as ledger:
        with pytest.raises(ConfigurationError, match="begins with"):
            ledger.statement(returned)
        ledger.statement(nested)
        with pytest.raises(ConfigurationError, match="begins with"):
            ledger.statement("/* /* */ COMMIT")
    with PostgresLedger(postgres_dsn) as postgres:
        postgres.statement(returned)
        postgres.statement("/*/**/*//* /* */ */--\rINSERT INTO effects VALUES (1)")
        with pytest.raises(ConfigurationError, match="begins with"):
            postgres.statement(nested)


@pytest.mark.parametrize(
    "sql",
    [
        INSERT,
        "\n-- why\r\n/* and\n * how */ insert into effects select value from staged ;\n-- end",
        "WITH a AS (SELECT value FROM staged) INSERT INTO effects SELECT value FROM a WHERE value LIKE '%'",
        "INSERT INTO effects SELECT value FROM staged RETURNING value",
    ],
)
def test_one_statement_may_have_comments_and_results(
    database: Database, ledger: Ledger, sql: str
) -> None:
    with ledger.transaction("g") as transaction:
        ledger.statement(sql)(transaction.connection, values("a", "b"))
    assert effects(database) == ["a", "b"]


@pytest.mark.parametrize("second", ["COMMIT", "ROLLBACK", "SELECT 1"])
@pytest.mark.parametrize("first", [INSERT, "SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a"])
def test_second_statement_is_rejected_before_the_first_runs(
    database: Database, ledger: Ledger, first: str, second: str
) -> None:
    effect = ledger.statement(f"{first}; {second}")
    refusals = (psycopg.errors.SyntaxError, sqlite3.ProgrammingError, sqlite3.Warning)
    with pytest.raises(refusals, match=r"(?i)(multiple commands|one statement)") as refusal:
        with ledger.transaction("g") as transaction:
            assert transaction.claim([b"id"]) == [True]
            effect(transaction.connection, values("a"))
    assert refusal.value.__notes__ == [f"The effect is one statement: {first}; {second}"]
    assert effects(database) == []
    with ledger.transaction("g") as transaction:
        assert transaction.claim([b"id"]) == [True]


def test_procedure_that_commits_is_rejected(postgres_dsn: str) -> None:
    database = PostgresDatabase(postgres_dsn)
    database.run(
        "CREATE PROCEDURE ending() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO effects VALUES ('a'); COMMIT; END $$"
    )
    database.run("CREATE PROCEDURE good() LANGUAGE sql AS $$ INSERT INTO effects VALUES ('b') $$")
    with database.ledger() as ledger:
        with pytest.raises(psycopg.errors.InvalidTransactionTermination):
            with ledger.transaction("g") as transaction:
                ledger.statement("CALL ending()")(transaction.connection, values("a"))
        assert effects(database) == []
        with ledger.transaction("g") as transaction:
            ledger.statement("CALL good()")(transaction.connection, values("a"))
    assert effects(database) == ["b"]


def test_merge_is_supported_in_postgres(postgres_dsn: str) -> None:
    database = PostgresDatabase(postgres_dsn)
    database.run("INSERT INTO effects VALUES ('b')")
    sql = (
        "MERGE INTO effects e USING staged s ON e.value = s.value "
        "WHEN MATCHED THEN UPDATE SET value = 'again' WHEN NOT MATCHED THEN INSERT VALUES (s.value)"
    )
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        ledger.statement(sql)(transaction.connection, values("a", "b"))
    assert effects(database) == ["a", "again"]


@pytest.fixture
def staged_of_the_user(database: Database, ledger: Ledger) -> str:
    """Create a table called `staged`; return its full name."""
    if isinstance(ledger, PostgresLedger):
        [(schema,)] = database.run("SELECT current_schema()")
    else:
        schema = "main"
    database.run("CREATE TABLE staged (value text)")
    database.run("INSERT INTO staged VALUES ('mine')")
    return f"{schema}.staged"


def test_table_of_the_user_called_staged_is_hidden_and_kept(
    database: Database, ledger: Ledger, staged_of_the_user: str
) -> None:
    sql = f"INSERT INTO {staged_of_the_user} SELECT value FROM staged"
    with ledger.transaction("g") as transaction:
        ledger.statement(sql)(transaction.connection, values("a"))
    assert sorted(database.run("SELECT value FROM staged")) == [("a",), ("mine",)]


MERGE = (
    "MERGE INTO staged t USING (SELECT value FROM staged) s ON t.value = s.value "
    "WHEN MATCHED THEN UPDATE SET value = 'b'"
)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO staged VALUES ('b')",
        "DELETE FROM staged WHERE value = 'a'",
        "DELETE FROM staged WHERE value = 'mine'",
        "UPDATE staged SET value = 'b'",
        "UPDATE staged SET value = 'b' WHERE value = 'mine'",
        "INSERT INTO staged VALUES ('a') ON CONFLICT (value) DO UPDATE SET value = 'b'",
        MERGE,
    ],
)
def test_statement_that_changes_the_staged_rows_is_rejected(
    database: Database, ledger: Ledger, staged_of_the_user: str, sql: str
) -> None:
    """Such a statement is meant for the user's table. It is rejected even if it only changes
    values, or none of these rows.
    """
    if sql == MERGE and isinstance(ledger, SQLiteLedger):
        pytest.skip("SQLite has no MERGE")
    with (
        pytest.raises(UsageError, match=r"would change staged, .* name the schema") as raised,
        ledger.transaction("g") as transaction,
    ):
        transaction.advance({KEY: 1})
        ledger.statement(sql)(transaction.connection, values("a"))
    assert raised.value.__notes__ == [f"The effect is one statement: {sql}"]
    assert database.run("SELECT value FROM staged") == [("mine",)]
    with ledger.transaction("g") as transaction:
        assert transaction.marks() == {}


@pytest.fixture
def kept_in_sqlite(tmp_path: Path) -> Iterator[SQLiteLedger]:
    with SQLiteLedger(tmp_path / "rows.db") as ledger:
        with ledger.transaction("g") as transaction:
            transaction.connection.execute("CREATE TABLE kept (number, value)")
        yield ledger


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO kept SELECT rowid, value FROM staged",
        "INSERT INTO kept SELECT s.OID, value FROM staged AS s",
        'INSERT INTO kept SELECT "_rowid_", value FROM staged',
        "INSERT INTO kept SELECT 1, value FROM staged ORDER BY staged.[RowId] DESC",
        "DELETE FROM kept WHERE rowid IN (SELECT staged.rowid FROM staged)",
    ],
)
def test_rowid_of_staged_rows_is_rejected(kept_in_sqlite: SQLiteLedger, sql: str) -> None:
    """Depending on how SQLite was compiled, it would be NULL or an unknown column."""
    with (
        pytest.raises(UsageError, match="staged has no rowid in SQLite: give its rows a column"),
        kept_in_sqlite.transaction("g") as transaction,
    ):
        kept_in_sqlite.statement(sql)(transaction.connection, values("a"))
    with kept_in_sqlite.transaction("g") as transaction:
        assert transaction.connection.execute("SELECT * FROM kept").fetchall() == []


def test_rowid_of_another_table_can_be_used(kept_in_sqlite: SQLiteLedger) -> None:
    sql = "INSERT INTO kept SELECT kept.rowid, staged.value FROM kept, staged"
    with kept_in_sqlite.transaction("g") as transaction:
        transaction.connection.execute("INSERT INTO kept (rowid, value) VALUES (42, 'x')")
        kept_in_sqlite.statement(sql)(transaction.connection, values("a"))
        found = transaction.connection.execute("SELECT * FROM kept").fetchall()
        assert found == [(None, "x"), (42, "a")]
        assert transaction.connection.execute("SELECT rowid FROM kept").fetchall() == [(42,), (43,)]


def test_rowid_of_the_table_of_the_user_called_staged_can_be_used(
    kept_in_sqlite: SQLiteLedger,
) -> None:
    """This also holds in the schema temp, if no statement has staged rows there."""
    with kept_in_sqlite.transaction("g") as transaction:
        connection = transaction.connection
        connection.execute("CREATE TABLE main.staged (value)")
        connection.execute("INSERT INTO main.staged (rowid, value) VALUES (42, 'x')")
        sql = "INSERT INTO kept SELECT mine.rowid, staged.value FROM main.staged AS mine, staged"
        kept_in_sqlite.statement(sql)(connection, values("a"))
        assert connection.execute("SELECT * FROM kept").fetchall() == [(42, "a")]
        connection.execute("CREATE TEMPORARY TABLE staged AS SELECT 'y' AS value")
        assert connection.execute("SELECT rowid, value FROM staged").fetchall() == [(1, "y")]
        connection.execute("DROP TABLE temp.staged")


@pytest.mark.parametrize("name", ["rowid", "ROWID", "oid"])
def test_rowid_is_rejected_even_if_a_column_has_that_name(
    kept_in_sqlite: SQLiteLedger, name: str
) -> None:
    effect = kept_in_sqlite.statement("INSERT INTO kept SELECT _rowid_, value FROM staged")
    with (
        pytest.raises(UsageError, match="staged has no rowid in SQLite"),
        kept_in_sqlite.transaction("g") as transaction,
    ):
        effect(transaction.connection, pa.table({name: [7], "value": ["a"]}))


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize(
    "sql", ["INSERT INTO kept SELECT 1, value FROM staged", "SELECT rowid FROM staged"]
)
def test_effect_cannot_commit_after_a_statement(
    kept_in_sqlite: SQLiteLedger, sql: str, end: str
) -> None:
    """A statement that set its own authorizer replaced the ledger's, and rows were committed
    without their marks.
    """
    with (
        pytest.raises(UsageError, match="tried to commit or roll back"),
        kept_in_sqlite.transaction("g") as transaction,
    ):
        transaction.advance({KEY: 1})
        with suppress(UsageError):
            kept_in_sqlite.statement(sql)(transaction.connection, values("a"))
        transaction.connection.execute(end)
    with kept_in_sqlite.transaction("g") as transaction:
        assert transaction.connection.execute("SELECT * FROM kept").fetchall() == []
        assert transaction.marks() == {}


def test_rollback_after_a_statement_cannot_be_hidden(kept_in_sqlite: SQLiteLedger) -> None:
    with (
        pytest.raises(UsageError, match="rolled the ledger's transaction back"),
        kept_in_sqlite.transaction("g") as transaction,
    ):
        connection = transaction.connection
        connection.execute("CREATE UNIQUE INDEX once ON kept (value)")
        effect = kept_in_sqlite.statement(
            "INSERT OR ROLLBACK INTO kept SELECT 1, value FROM staged"
        )
        with suppress(sqlite3.IntegrityError):
            effect(connection, values("a", "a"))
        connection.execute("INSERT INTO kept VALUES (2, 'b')")
    with kept_in_sqlite.transaction("g") as transaction:
        assert transaction.connection.execute("SELECT * FROM kept").fetchall() == []


@pytest.mark.parametrize("name", ["rowid", "ROWID", "oid"])
def test_column_may_have_the_name_of_the_rowid(kept_in_sqlite: SQLiteLedger, name: str) -> None:
    rows = pa.table({name: [7], "value": ["a"]})
    with kept_in_sqlite.transaction("g") as transaction:
        kept_in_sqlite.statement(f"INSERT INTO kept SELECT {name}, value FROM staged")(
            transaction.connection, rows
        )
        assert transaction.connection.execute("SELECT * FROM kept").fetchall() == [(7, "a")]


def test_effect_that_catches_the_error_of_a_statement_can_run_the_next(tmp_path: Path) -> None:
    database = SQLiteDatabase(tmp_path / "a.db")
    database.run("CREATE UNIQUE INDEX once ON effects (value)")
    with database.ledger() as ledger:
        effect = ledger.statement(INSERT)
        for batch in (("a", "a"), ("b", "c")):
            with ledger.transaction("g") as transaction:
                with suppress(sqlite3.IntegrityError):
                    effect(transaction.connection, values(*batch))
                assert names_of(transaction.connection, is_postgres=False) == []
    assert effects(database) == ["b", "c"]


@pytest.mark.parametrize(
    "sql",
    [
        'INSERT INTO effects SELECT "valeu" FROM staged',
        """INSERT INTO effects SELECT '"' || "valeu" || '"' FROM staged""",
        'INSERT /* " */ INTO effects SELECT "valeu" -- "',
    ],
)
def test_unknown_name_is_not_a_string_in_sqlite(tmp_path: Path, sql: str) -> None:
    database = SQLiteDatabase(tmp_path / "a.db")
    with database.ledger() as ledger:
        with pytest.raises(sqlite3.OperationalError, match="no such column: valeu"):
            with ledger.transaction("g") as transaction:
                ledger.statement(sql)(transaction.connection, values("a"))
    assert effects(database) == []


def test_double_quote_in_text_stays_a_double_quote(database: Database, ledger: Ledger) -> None:
    sql = """INSERT /* " ' */ INTO effects -- " '
        SELECT '"it''s" ' || "value" || '"' FROM staged"""
    with ledger.transaction("g") as transaction:
        ledger.statement(sql)(transaction.connection, values("`a`"))
    assert effects(database) == ['"it\'s" `a`"']


def test_many_parts_fit_into_one_transaction(postgres_dsn: str) -> None:
    """Each part holds locks until the commit, and the server's lock table has a fixed size."""
    with PostgresLedger(postgres_dsn) as ledger:
        effect = ledger.statement("SELECT count(*) FROM staged")
        with ledger.transaction("g") as transaction:
            for _ in range(2000):
                effect(transaction.connection, values("a"))


def test_search_path_that_finds_another_staged_first_is_rejected(postgres_dsn: str) -> None:
    """Otherwise the rows of another table would be used as the batch."""
    database = PostgresDatabase(postgres_dsn)
    database.run("CREATE TABLE staged (value text)")
    [(schema,)] = database.run("SELECT current_schema()")
    with database.ledger() as ledger:
        with pytest.raises(UsageError, match="pg_temp out of search_path"):
            with ledger.transaction("g") as transaction:
                transaction.connection.execute(f"SET LOCAL search_path = {schema}, pg_temp")
                ledger.statement(INSERT)(transaction.connection, values("a"))
    assert effects(database) == []


def test_rows_are_copied_in_pieces(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_copy, "ROWS_MAX", 3)
    sent = [[{"key": f"k{n}", "value": b"v" * n}] * (n % 3) for n in range(20)]
    rows = pa.table({"value": [str(n) for n in range(20)], "headers": pa.array(sent, HEADERS)})
    database = PostgresDatabase(postgres_dsn)
    sql = "INSERT INTO effects SELECT value || ' ' || coalesce(headers[2].key, '') FROM staged"
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        ledger.statement(sql)(transaction.connection, rows)
    assert effects(database) == sorted(f"{n} {f'k{n}' if n % 3 == 2 else ''}" for n in range(20))
