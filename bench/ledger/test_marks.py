"""Marks alone, compared with a claim of every id: transactions of 100,000 records, 30 % retries.

Both insert the accepted rows into a table without an index, SQLite by executemany, PostgreSQL by
COPY; the ratio is the cost of an index entry per record. Transactions are cumulative, because the
index grows. PostgreSQL is the server of the tests, without fsync; SQLite's file is in pytest's
temporary directory, with fsync.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafka_core.idempotent import PartitionKey
from pykafka_core.idempotent.sql import SqlLedger
from tests.idempotent.databases import Database, PostgresDatabase, SQLiteDatabase

RECORDS = 100_000
TRANSACTIONS = 6
KEY = PartitionKey(b"\1" * 16, "flights", 0)
Rows = list[tuple[bytes, int]]


def batches() -> list[Rows]:
    """Ids of 20 bytes; a retry repeats any earlier one."""
    rng = random.Random(4)
    ids: list[bytes] = []
    made = []
    for _ in range(TRANSACTIONS):
        batch = [
            rng.choice(ids) if ids and rng.random() < 0.3 else rng.randbytes(20)
            for _ in range(RECORDS)
        ]
        ids += batch
        made.append([(value, number) for number, value in enumerate(batch)])
    return made


def insert_sqlite(connection: Any, rows: Rows) -> None:
    connection.executemany("INSERT INTO events VALUES (?, ?)", rows)


def insert_postgres(connection: Any, rows: Rows) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY events FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.set_types(["bytea", "int8"])
        for row in rows:
            copy.write_row(row)


def process(
    ledger: SqlLedger, insert: Callable[[Any, Rows], None], rows: Rows, claims: bool
) -> None:
    with ledger.transaction("bench") as transaction:
        mark = transaction.marks().get(KEY, 0)
        if claims:
            mask = transaction.claim([value for value, _ in rows])
            rows = [row for row, is_new in zip(rows, mask, strict=True) if is_new]
        insert(transaction.connection, rows)
        transaction.advance({KEY: mark + RECORDS})


@pytest.mark.parametrize("way", ["marks", "ids"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_transactions_of_100_000_records(
    benchmark: Any, kind: str, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    benchmark.group = f"ledger: a transaction of 100,000 records in {kind}"
    database: Database = SQLiteDatabase(tmp_path / "l.db")
    insert = insert_sqlite
    if kind == "postgres":
        database, insert = (
            PostgresDatabase(request.getfixturevalue("postgres_dsn")),
            insert_postgres,
        )
    id_type = "bytea" if kind == "postgres" else "BLOB"
    database.run(f"CREATE TABLE events (id {id_type}, value bigint)")
    work = batches()
    distinct = len({value for rows in work for value, _ in rows})
    with database.ledger() as ledger:
        remaining = iter(work)
        benchmark.pedantic(
            lambda rows: process(ledger, insert, rows, way == "ids"),
            setup=lambda: ((next(remaining),), {}),
            rounds=TRANSACTIONS,
        )
        with ledger.transaction("bench") as transaction:
            assert transaction.marks() == {KEY: TRANSACTIONS * RECORDS}
    expected = distinct if way == "ids" else TRANSACTIONS * RECORDS
    assert database.run("SELECT count(*) FROM events") == [(expected,)]
