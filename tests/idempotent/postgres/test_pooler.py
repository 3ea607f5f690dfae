"""A ledger and a pooler in transaction mode, which loses prepared statements."""

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pykafka_core.errors import ConfigurationError, LedgerError
from pykafka_core.idempotent import PartitionKey, PostgresLedger
from tests.idempotent.postgres.pooler import pooled
from tests.support.postgres import PostgresServer

KEY = PartitionKey(b"i" * 16, "orders", 0)
BATCHES = 20
"""Enough batches for a prepared statement: psycopg prepares one when it runs for the sixth time."""
UNPREPARED: dict[str, Any] = {"prepare_threshold": None}

pytestmark = pytest.mark.postgres


@pytest.fixture
def dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The connection string of a pooler, with an empty database."""
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="pooler-") as home:
        server = postgres_server.create_database()
        with psycopg.connect(server) as connection:
            connection.execute("CREATE TABLE effects (value bigint)")
        with pooled(server, Path(home)) as pooler:
            yield pooler


def count(ledger: PostgresLedger, offset: int, *, claims: bool = True) -> None:
    """Commit one batch: an effect, an id and the mark."""
    with ledger.transaction("g") as transaction:
        if claims:
            assert transaction.claim([b"%d" % offset]) == [True]
        transaction.connection.execute("INSERT INTO effects VALUES (%s)", (offset,))
        transaction.advance({KEY: offset + 1})


def test_ledger_without_prepared_statements_works_with_a_pooler(dsn: str) -> None:
    with PostgresLedger(dsn, connect=UNPREPARED) as ledger:
        for offset in range(BATCHES):
            count(ledger, offset)
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: BATCHES}
    with psycopg.connect(dsn, **UNPREPARED) as connection:
        found = connection.execute("SELECT count(*), sum(value) FROM effects").fetchone()
        assert found == (BATCHES, sum(range(BATCHES)))


def test_lost_prepared_statement_is_an_error_that_names_the_option(dsn: str) -> None:
    """It was an error with the advice to retry, and so it was repeated forever."""
    with (
        pytest.raises(LedgerError, match="prepare_threshold") as caught,
        PostgresLedger(dsn) as ledger,
    ):
        for offset in range(BATCHES):
            count(ledger, offset)
    assert type(caught.value) is LedgerError, "another call would not help"
    assert "PgBouncer" in str(caught.value)


def test_lost_prepared_statement_of_an_effect_is_its_error_with_a_note(dsn: str) -> None:
    with (
        pytest.raises(psycopg.Error) as caught,
        PostgresLedger(dsn, connect=UNPREPARED) as ledger,
        ledger.transaction("g") as transaction,
    ):
        transaction.connection.execute("EXECUTE of_another_transaction")
    (note,) = caught.value.__notes__
    assert "PgBouncer" in note


def test_options_are_pickled_and_bad_ones_are_rejected() -> None:
    ledger = PostgresLedger("dbname=shop", connect=UNPREPARED | {"application_name": "count"})
    assert pickle.loads(pickle.dumps(ledger))._options == ledger._options
    for options, text in (
        ({"autocommit": False}, "autocommit"),
        ({"no_such_option": 1}, "no_such_option"),
    ):
        with pytest.raises(ConfigurationError, match=text):
            PostgresLedger("dbname=shop", connect=options)
    assert "shop@pooler" in repr(PostgresLedger("dbname=shop", connect={"host": "pooler"}))


def test_statements_of_the_ledger_do_not_depend_on_the_cursor_factory(dsn: str) -> None:
    """Frameworks have cursors that insert parameters into the text and return no binary results."""
    options = UNPREPARED | {"cursor_factory": psycopg.ClientCursor}
    with PostgresLedger(dsn, connect=options) as ledger:
        count(ledger, 0)
        with ledger.transaction("g") as transaction:
            assert type(transaction.connection.cursor()) is psycopg.ClientCursor
            assert transaction.claim([b"0"]) == [False]
