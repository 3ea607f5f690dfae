"""Settings that an effect leaves on the ledger's connection, and its rollbacks, never lose marks or
ids silently.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pykafka_core.errors import ConfigurationError, LedgerError, UsageError
from pykafka_core.idempotent import PartitionKey, PostgresLedger, Retention, SQLiteLedger
from tests.idempotent.databases import Database, PostgresDatabase

KEY = PartitionKey(b"i" * 16, "orders", 0)


class TextAsBytes(psycopg.adapt.Loader):
    def load(self, data: Any) -> bytes:
        return bytes(data)


def as_bytes(connection: Any) -> None:
    """Make the connection return text as bytes, so that stored names are not found."""
    if isinstance(connection, sqlite3.Connection):
        connection.text_factory = bytes
    else:
        connection.adapters.register_loader("text", TextAsBytes)


def read_only(connection: Any) -> None:
    is_sqlite = isinstance(connection, sqlite3.Connection)
    connection.execute(
        "PRAGMA query_only = 1" if is_sqlite else "SET default_transaction_read_only = on"
    )


def test_mark_never_goes_back_if_the_connection_returns_text_as_bytes(database: Database) -> None:
    with database.ledger() as ledger:
        with ledger.transaction("g") as transaction:
            transaction.advance({KEY: 100})
            assert transaction.begin_batch("q", 7)
            as_bytes(transaction.connection)
        with pytest.raises(UsageError), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 5})
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert (transaction.marks(), transaction.batches()) == ({KEY: 100}, {"q": 7})


def test_settings_left_by_an_effect_do_not_last(database: Database) -> None:
    """One or two transactions may fail, with an error."""
    with database.ledger() as ledger:
        failures = 0
        for offset in (1, 2, 3, 4):
            try:
                with ledger.transaction("g") as transaction:
                    transaction.advance({KEY: offset})
                    if offset == 1:
                        read_only(transaction.connection)
            except LedgerError:
                failures += 1
        assert failures < 3
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 4}


def in_savepoint(connection: Any, work: Callable[[], object]) -> None:
    """Call a function, and roll back to a savepoint before it."""
    connection.execute("SAVEPOINT taken_back")
    work()
    connection.execute("ROLLBACK TO taken_back")


def test_mark_rolled_back_by_a_savepoint_is_an_error(database: Database) -> None:
    with database.ledger() as ledger:
        with (
            pytest.raises(UsageError, match="outside of savepoints"),
            ledger.transaction("g") as transaction,
        ):
            in_savepoint(transaction.connection, lambda: transaction.advance({KEY: 10}))
            transaction.advance({KEY: 10})
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}
            transaction.advance({KEY: 10, KEY._replace(partition=1): 2**63 - 1})
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 10, KEY._replace(partition=1): 2**63 - 1}


def test_ids_rolled_back_by_a_savepoint_do_not_count(database: Database) -> None:
    with database.ledger(retention=Retention(count=5)) as ledger:
        with ledger.transaction("g") as transaction:
            assert transaction.claim([b"keep"]) == [True]
            for number in range(6):
                claim = partial(transaction.claim, [b"taken %d" % number])
                in_savepoint(transaction.connection, claim)
            assert transaction.claim([b"z"]) == [True]
        with ledger.transaction("g") as transaction:
            assert transaction.claim([b"keep", b"z", b"taken 0"]) == [False, False, True]
    assert database.run("SELECT ids_count FROM pykafka_groups") == [(3,)]


def test_task_counts_no_ids_rolled_back_by_a_savepoint(postgres_dsn: str) -> None:
    database = PostgresDatabase(postgres_dsn)
    with database.ledger() as ledger:
        with ledger.partitions_transaction("g", [KEY]) as transaction:
            in_savepoint(transaction.connection, lambda: transaction.claim([b"a"]))
            transaction.advance({KEY: 1})
        with ledger.partitions_transaction("g", [KEY]) as transaction:
            assert transaction.claim([b"a", b"b"]) == [True, True]
        with (
            pytest.raises(UsageError, match="outside of savepoints"),
            ledger.partitions_transaction("g", [KEY]) as transaction,
        ):
            in_savepoint(transaction.connection, lambda: transaction.advance({KEY: 9}))
    assert database.run("SELECT ids_count FROM pykafka_groups") == [(2,)]


@pytest.mark.parametrize("timeout_ms", [0, 2**31, 3_000_000_000, 1.5])
def test_impossible_timeout_is_rejected(tmp_path: Path, timeout_ms: Any) -> None:
    for make in (SQLiteLedger, PostgresLedger):
        with pytest.raises(ConfigurationError, match="timeout_ms"):
            make(str(tmp_path / "l") if make is SQLiteLedger else "", timeout_ms=timeout_ms)


@pytest.mark.parametrize("group", ["\U00010348" * 600, "\ud800", "a" * 1025])
def test_group_name_too_long_for_an_index_is_rejected(database: Database, group: str) -> None:
    with (
        database.ledger() as ledger,
        pytest.raises(UsageError, match="group "),
        ledger.transaction(group),
    ):
        pass
