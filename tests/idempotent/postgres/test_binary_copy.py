"""Rows that are sent to a real server by `binary_copy` are read back unchanged."""

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_core.errors import UsageError
from pykafka_core.idempotent.postgres import binary_copy

UTC = datetime.UTC
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def whole(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low = -(1 << (bits - 1)) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    end = 10**precision - 1
    exact = decimal.Context(prec=50)
    return st.integers(-end, end).map(lambda n: decimal.Decimal(n).scaleb(-scale, exact))


KINDS: dict[Any, tuple[str, st.SearchStrategy[Any]]] = {
    pa.binary(): ("bytea", st.binary()),
    pa.large_binary(): ("bytea", st.binary()),
    pa.binary(3): ("bytea", st.binary(min_size=3, max_size=3)),
    pa.string(): ("text", TEXT),
    pa.large_string(): ("text", TEXT),
    pa.bool_(): ("boolean", st.booleans()),
    pa.int8(): ("smallint", whole(8)),
    pa.int16(): ("smallint", whole(16)),
    pa.int32(): ("integer", whole(32)),
    pa.int64(): ("bigint", whole(64)),
    pa.uint8(): ("integer", whole(8, signed=False)),
    pa.uint16(): ("integer", whole(16, signed=False)),
    pa.uint32(): ("bigint", whole(32, signed=False)),
    pa.float32(): ("real", st.floats(width=32, allow_nan=False)),
    pa.float64(): ("double precision", st.floats(allow_nan=False)),
    pa.date32(): ("date", st.dates()),
    pa.timestamp("us"): ("timestamp", TIMES),
    pa.timestamp("s"): ("timestamp", TIMES.map(lambda time: time.replace(microsecond=0))),
    pa.timestamp("us", "Europe/Paris"): ("timestamptz", TIMES.map(lambda t: t.replace(tzinfo=UTC))),
    pa.decimal128(1, 0): ("numeric", decimals(1, 0)),
    pa.decimal128(10, 2): ("numeric", decimals(10, 2)),
    pa.decimal128(38, 0): ("numeric", decimals(38, 0)),
    pa.decimal128(38, 18): ("numeric", decimals(38, 18)),
    pa.decimal128(38, 37): ("numeric", decimals(38, 37)),
    pa.decimal128(7, 7): ("numeric", decimals(7, 7)),
}


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def read_back(connection: psycopg.Connection[Any], rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = [f"c{n} {binary_copy.postgres_type(field)}" for n, field in enumerate(rows.schema)]
    connection.execute("DROP TABLE IF EXISTS copied")
    statement = f"CREATE TEMPORARY TABLE copied (n serial, {', '.join(columns)})"
    connection.execute(statement.encode())
    names = ", ".join(f"c{n}" for n in range(rows.num_columns))
    with connection.cursor(binary=True) as cursor:  # Text rounds float4.
        with cursor.copy(f"COPY copied ({names}) FROM STDIN (FORMAT binary)".encode()) as copy:
            for piece in binary_copy.copy_stream(rows.to_reader()):
                copy.write(piece)
        cursor.execute(f"SELECT {names} FROM copied ORDER BY n".encode())
        return cursor.fetchall()


@st.composite
def tables(draw: st.DrawFn, known: dict[Any, tuple[str, st.SearchStrategy[Any]]]) -> pa.Table:
    """Return columns of these kinds with nulls, in chunks that may be empty or slices of longer
    ones.
    """
    kinds = draw(st.lists(st.sampled_from(list(known)), min_size=1, max_size=6))
    schema = pa.schema([(f"column {number}", kind) for number, kind in enumerate(kinds)])
    row = st.tuples(*[st.none() | known[kind][1] for kind in kinds])
    chunks = []
    for values in draw(st.lists(st.lists(row, max_size=6), max_size=3)):
        columns = list(zip(*values, strict=True)) or [()] * len(kinds)
        batch = pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)],
            schema=schema,
        )
        chunks.append(batch.slice(draw(st.integers(0, len(values)))))
    return pa.Table.from_batches(chunks, schema)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables(KINDS))
def test_every_value_round_trips(connection: psycopg.Connection[Any], rows: pa.Table) -> None:
    assert [binary_copy.postgres_type(field) for field in rows.schema] == [
        KINDS[field.type][0] for field in rows.schema
    ]
    expected = [tuple(row.values()) for row in rows.to_pylist()]
    assert read_back(connection, rows) == expected


@pytest.mark.parametrize("bounds", [{"ROWS_MAX": 3}, {"CHUNK_BYTES": 100}, {"CHUNK_BYTES": 1}])
def test_rows_are_encoded_in_pieces(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int]
) -> None:
    for name, bound in bounds.items():
        monkeypatch.setattr(binary_copy, name, bound)
    rows = pa.table({"text": [str(n) * (n % 7) for n in range(50)], "number": range(50)})
    assert len(list(binary_copy.copy_stream(rows.to_reader()))) > 10
    assert read_back(connection, rows) == [tuple(row.values()) for row in rows.to_pylist()]


def test_special_floats_round_trip(connection: psycopg.Connection[Any]) -> None:
    rows = pa.table({"x": pa.array([float("nan"), float("inf"), -float("inf"), -0.0])})
    assert str(read_back(connection, rows)) == "[(nan,), (inf,), (-inf,), (-0.0,)]"


def test_nanoseconds_that_are_whole_microseconds_are_kept(
    connection: psycopg.Connection[Any],
) -> None:
    rows = pa.table({"t": pa.array([1_000, None, -5_000], pa.timestamp("ns"))})
    start = datetime.datetime(1970, 1, 1)
    step = datetime.timedelta(microseconds=1)
    assert read_back(connection, rows) == [(start + step,), (None,), (start - 5 * step,)]


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array(["fine", "a\0b"]), "'odd' .*NUL"),
        (pa.array([1], pa.uint64()), "'odd' .*uint64.* cast"),
        (pa.array([[1]]), "'odd' .*list.*to_json"),
        (pa.array([{"a": 1}]), "'odd' .*struct.*to_json"),
        (pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), "'odd' .*map.*to_json"),
        (pa.array([None]), "'odd' .*null.* cast"),
        (pa.array(["a"]).dictionary_encode(), "'odd' .*dictionary.* cast"),
        (pa.array([1], pa.timestamp("ns")), r"'odd'.* timestamp\('us'\)"),
        (pa.array([2**62], pa.timestamp("s")), r"'odd'.* 64 bits"),
        (pa.array([-(2**63)], pa.timestamp("us")), "'odd' .*before"),
        (pa.array([-(2**31)], pa.int32()).cast(pa.date32()), "'odd' .*before"),
        (pa.array([100], pa.decimal128(3, -2)), "'odd' .*decimal.* cast"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_value_that_postgresql_cannot_hold_is_rejected_with_the_column_name(
    column: pa.Array, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        rows = pa.table({"good": range(len(column)), "odd": column})
        list(binary_copy.copy_stream(rows.to_reader()))


def test_null_hides_any_bytes_under_it(connection: psycopg.Connection[Any]) -> None:
    values = pa.array(["a\0b", "fine"])
    hidden = pa.StringArray.from_buffers(
        2, values.buffers()[1], values.buffers()[2], pa.py_buffer(b"\2"), 1
    )
    assert read_back(connection, pa.table({"x": hidden})) == [(None,), ("fine",)]
