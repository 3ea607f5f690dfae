"""What only PostgreSQL can do to a ledger."""

import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent import PartitionKey, PostgresLedger
from tests.support.postgres import PostgresServer

KEY = PartitionKey(b"\1" * 16, "orders", 0)


def test_a_server_that_dies_in_the_middle_takes_the_transaction_with_it(
    postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        with ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
        with pytest.raises(LedgerUnavailableError), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 2})
            postgres_server.restart()
            transaction.claim([b"a"])
        with pytest.raises(LedgerUnavailableError), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 3})
            postgres_server.restart()
        with pytest.raises(LedgerUnavailableError), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 4})
            postgres_server.restart()
            transaction.connection.execute("SELECT 1")  # An effect's statement.
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 1}
            assert transaction.claim([b"a"]) == [True]


def test_a_server_that_is_away_is_an_error_until_it_is_back(
    postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        with ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
        postgres_server.crash()
        try:
            for _ in range(2):
                with pytest.raises(LedgerUnavailableError):
                    ledger.transaction("g").__enter__()
        finally:
            postgres_server.start()
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 1}


def test_an_effect_that_commits_in_sql_is_told(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        for statement in ("COMMIT", "ROLLBACK", "COMMIT; BEGIN"):
            with pytest.raises(UsageError, match="ended"), ledger.transaction("g") as transaction:
                transaction.connection.execute(statement)
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}


def test_an_error_of_the_effect_stays_the_effects(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        with pytest.raises(psycopg.errors.UndefinedTable), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
            transaction.connection.execute("INSERT INTO nowhere VALUES (1)")
        with pytest.raises(LedgerError), ledger.transaction("g") as transaction:
            with pytest.raises(psycopg.errors.UndefinedTable):
                transaction.connection.execute("INSERT INTO nowhere VALUES (1)")
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}


def test_groups_do_not_wait_for_each_other(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as one, PostgresLedger(postgres_dsn) as other:
        with one.transaction("g") as first, other.transaction("h") as second:
            assert first.claim([b"a"]) == [True]
            assert second.claim([b"a"]) == [True]


@pytest.mark.parametrize(
    "setting",
    ["default_transaction_isolation = 'serializable'", "synchronous_commit = off"],
)
def test_settings_of_the_server_weaken_nothing(
    postgres_server: PostgresServer, setting: str
) -> None:
    postgres_dsn = postgres_server.create_database()
    with psycopg.connect(postgres_dsn) as connection:
        database = connection.info.dbname
        connection.execute(f"ALTER DATABASE {database} SET {setting}".encode())
    with PostgresLedger(postgres_dsn) as ledger, ledger.transaction("g") as transaction:
        show = transaction.connection.execute
        assert show("SHOW transaction_isolation").fetchone() == ("read committed",)
        assert show("SHOW synchronous_commit").fetchone() == ("on",)


def test_rows_of_another_shape_do_not_matter(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        for offset in (1, 2):
            with ledger.transaction("g") as transaction:
                transaction.connection.row_factory = dict_row
                assert transaction.marks() == ({KEY: 1} if offset == 2 else {})
                transaction.advance({KEY: offset})


def test_the_schema_of_the_search_path_is_used(postgres_server: PostgresServer) -> None:
    postgres_dsn = postgres_server.create_database()
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("CREATE SCHEMA billing")
    with PostgresLedger(postgres_dsn) as plain, plain.transaction("g") as transaction:
        transaction.advance({KEY: 1})
    conninfo = f"{postgres_dsn} options='-c search_path=billing'"
    with PostgresLedger(conninfo) as ledger, ledger.transaction("g") as transaction:
        assert transaction.marks() == {}


@pytest.mark.parametrize("conninfo", ["colour=blue", 5, None])
def test_a_bad_connection_string_is_refused_by_name(conninfo: str) -> None:
    with pytest.raises(ConfigurationError, match="conninfo"):
        PostgresLedger(conninfo)


def test_no_server_is_an_error_without_the_password(tmp_path: Path) -> None:
    with PostgresLedger(f"host={tmp_path} dbname=shop password=secret") as ledger:
        with pytest.raises(LedgerUnavailableError, match=r"shop@") as raised:
            ledger.transaction("g").__enter__()
    assert "secret" not in f"{raised.value}{ledger!r}"


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"pykafka_core\[postgres\]"):
        PostgresLedger("dbname=x")
