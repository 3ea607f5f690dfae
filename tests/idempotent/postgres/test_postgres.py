"""Ledgers: behaviour that is specific to PostgreSQL."""

import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.rows import dict_row

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent import PartitionKey, PostgresLedger, Retention
from pykafka_core.idempotent.postgres import ids as postgres_ids
from tests.support.postgres import PostgresServer

KEY = PartitionKey(b"\1" * 16, "orders", 0)


def test_transaction_is_lost_when_its_server_restarts(
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
            transaction.connection.execute("SELECT 1")  # a statement of an effect
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 1}
            assert transaction.claim([b"a"]) == [True]


def test_unreachable_server_is_an_error_until_it_returns(
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


def test_effect_that_commits_in_sql_is_reported(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as ledger:
        for statement in ("COMMIT", "ROLLBACK", "COMMIT; BEGIN"):
            with pytest.raises(UsageError, match="ended"), ledger.transaction("g") as transaction:
                transaction.connection.execute(statement)
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}


def opened(ledger: PostgresLedger, of_partitions: bool) -> Any:
    return ledger.partitions_transaction("g", [KEY]) if of_partitions else ledger.transaction("g")


@pytest.mark.parametrize("of_partitions", [False, True])
@pytest.mark.parametrize("then", ["advance", "claim", "nothing"])
@pytest.mark.parametrize(
    ("statements", "left", "claimed"),
    [
        ("ROLLBACK", "rolled back, and the marks are as before", False),
        ("ROLLBACK; BEGIN", "rolled back, and the marks are as before", False),
        ("COMMIT", "committed: .* claimed ids, whose rows are not processed again", True),
        ("COMMIT; BEGIN", "committed: .* claimed ids", True),
    ],
)
def test_no_mark_moves_outside_the_transaction_of_the_ledger(
    postgres_dsn: str,
    statements: str,
    left: str,
    claimed: bool,
    then: str,
    of_partitions: bool,
) -> None:
    """Such a mark was committed at once, while its effect was rolled back."""
    with PostgresLedger(postgres_dsn) as ledger:
        with ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
        with (
            pytest.raises(UsageError, match=left),
            opened(ledger, of_partitions) as transaction,
        ):
            if then == "claim":
                transaction.connection.execute(statements)
                transaction.claim([b"other"])
            else:
                transaction.claim([b"id"])
                with pytest.raises(psycopg.errors.DivisionByZero):
                    with transaction.connection.transaction():
                        transaction.connection.execute("SELECT 1 / 0")
                transaction.connection.execute(statements)
            if then == "advance":
                try:
                    transaction.advance({KEY: 7})
                finally:
                    transaction.connection.execute("COMMIT")
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 1}
            assert transaction.claim([b"other"]) == [True]
            assert transaction.claim([b"id"]) == [then == "claim" or not claimed]


def test_an_effect_that_changes_the_search_path_moves_no_mark_of_another_ledger(
    postgres_server: PostgresServer,
) -> None:
    dsn = postgres_server.create_database()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE SCHEMA other")
    with (
        PostgresLedger(dsn) as ledger,
        PostgresLedger(f"{dsn} options='-c search_path=other'") as other,
    ):
        for known in (ledger, other):
            with known.transaction("g") as transaction:
                transaction.advance({KEY: 1})
        with ledger.transaction("g") as transaction:
            transaction.connection.execute("SET search_path = other")
            assert transaction.claim([b"a"]) == [True]
            assert transaction.claim(pa.array([b"b"])).to_pylist() == [True]
            assert transaction.begin_batch("q", 3)
            transaction.advance({KEY: 5})
        with ledger.partitions_transaction("g", [KEY]) as part:
            part.connection.execute("SET search_path = other")
            assert part.claim([b"a", b"c"]) == [False, True]
            part.advance({KEY: 6})
        for known, mark, new in ((ledger, 6, [False] * 3), (other, 1, [True] * 3)):
            with known.transaction("g") as transaction:
                assert transaction.marks() == {KEY: mark}
                assert transaction.batches() == ({} if known is other else {"q": 3})
                assert transaction.claim([b"a", b"b", b"c"]) == new


def test_two_ledgers_of_a_schema_exclude_each_other_with_any_search_path(
    postgres_dsn: str,
) -> None:
    with PostgresLedger(postgres_dsn) as one:
        with one.transaction("g") as transaction:
            transaction.connection.execute("SET search_path = pg_catalog")
        with (
            one.transaction("g"),
            PostgresLedger(postgres_dsn, timeout_ms=100) as other,
            pytest.raises(LedgerUnavailableError, match="lock timeout"),
        ):
            other.transaction("g").__enter__()


@pytest.mark.parametrize("schema", ['a"?b', "50%", "A.main.{x}", "%s"])
def test_a_schema_of_any_name_can_have_a_ledger(
    postgres_server: PostgresServer, schema: str
) -> None:
    dsn = postgres_server.create_database()
    name = '"' + schema.replace('"', '""') + '"'
    with psycopg.connect(dsn) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        role = f"ALTER DATABASE {connection.info.dbname} SET search_path = {name}"
        connection.execute(role.encode())
    for mark in (1, 2):
        with PostgresLedger(dsn) as ledger, ledger.transaction("g") as transaction:
            assert transaction.marks() == ({KEY: 1} if mark == 2 else {})
            assert transaction.claim([b"a"]) == [mark == 1]
            assert transaction.claim(pa.array([b"b"])).to_pylist() == [mark == 1]
            transaction.advance({KEY: mark})


def test_settings_left_by_an_effect_weaken_no_later_transaction(postgres_dsn: str) -> None:
    settings = "synchronous_commit", "lock_timeout", "search_path", "client_encoding"
    left = "off", "0", "nowhere", "SQL_ASCII"

    def shown(connection: Any) -> list[str]:
        return [connection.execute(f"SHOW {name}").fetchone()[0] for name in settings]

    with PostgresLedger(postgres_dsn) as ledger:
        with ledger.transaction("g") as transaction:
            before = shown(transaction.connection)
            for name, value in zip(settings, left, strict=True):
                transaction.connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        with ledger.transaction("g") as transaction:
            assert shown(transaction.connection) == before


def test_commit_is_durable_even_if_the_effect_disabled_that(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn) as ledger, ledger.transaction("g") as transaction:
        transaction.connection.execute("SET synchronous_commit = off")
        transaction.settle()  # as at the end of the block before the commit
        show = transaction.connection.execute("SHOW synchronous_commit")
        assert show.fetchone() == ("on",)


@pytest.mark.parametrize("by", ["database", "conninfo"])
def test_text_without_an_encoding_is_treated_as_utf8(
    postgres_server: PostgresServer, by: str
) -> None:
    """psycopg returns names as bytes there, which differ from the names in the tables."""
    dsn = postgres_server.create_database()
    if by == "conninfo":
        dsn += " client_encoding=SQL_ASCII"
    else:
        with psycopg.connect(dsn, autocommit=True) as connection:
            name = f"{connection.info.dbname}_ascii"
            connection.execute(
                f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 "
                "LC_COLLATE 'C' LC_CTYPE 'C'".encode()
            )
            dsn = dsn.replace(connection.info.dbname, name)
    with PostgresLedger(dsn) as ledger:
        for mark in (1, 2):
            with ledger.transaction("gruppe ü") as transaction:
                assert transaction.marks() == ({KEY: 1} if mark == 2 else {})
                assert transaction.batches() == ({"q": 1} if mark == 2 else {})
                transaction.begin_batch("q", mark)
                transaction.advance({KEY: mark})


def test_error_of_the_effect_is_propagated(postgres_dsn: str) -> None:
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
def test_settings_of_the_server_do_not_weaken_a_transaction(
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


def test_row_factory_of_the_effect_does_not_affect_the_ledger(postgres_dsn: str) -> None:
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
def test_bad_connection_string_is_rejected_by_name(conninfo: str) -> None:
    with pytest.raises(ConfigurationError, match="conninfo"):
        PostgresLedger(conninfo)


def test_unreachable_server_is_an_error_without_the_password(tmp_path: Path) -> None:
    with PostgresLedger(f"host={tmp_path} dbname=shop password=secret") as ledger:
        with pytest.raises(LedgerUnavailableError, match=r"shop@") as raised:
            ledger.transaction("g").__enter__()
    assert "secret" not in f"{raised.value}{ledger!r}"


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"pykafka_core\[postgres\]"):
        PostgresLedger("dbname=x")


@pytest.mark.parametrize("parameter_bytes_max", [0, 1 << 20])
@pytest.mark.parametrize("arrow", [False, True])
def test_ids_are_sent_as_a_parameter_or_through_a_table(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, parameter_bytes_max: int, arrow: bool
) -> None:
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", parameter_bytes_max)

    def claim(transaction: Any, *ids: bytes) -> Any:
        if not arrow:
            return transaction.claim(ids)
        return transaction.claim(pa.chunked_array([ids[:2], ids[2:]], pa.binary())).to_pylist()

    with PostgresLedger(postgres_dsn) as ledger:
        for _ in range(7):  # psycopg prepares statements that it sends often
            with pytest.raises(ZeroDivisionError), ledger.transaction("g") as transaction:
                assert claim(transaction, b"b", b"a", b"b", b"\0") == [True, True, False, True]
                assert claim(transaction, b"c", b"a", b"c") == [True, False, False]
                1 / 0  # noqa: B018
        with ledger.transaction("g") as transaction:
            assert claim(transaction, b"z", b"y") == [True, True]
            assert claim(transaction, b"z", b"y") == [False, False]
            assert claim(transaction) == []
        with ledger.partitions_transaction("g", [KEY]) as part:
            assert claim(part, b"z", b"x", b"x") == [False, True, False]
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute(
            "SELECT c.ids_count, count(*) FROM pykafka_claims c JOIN pykafka_ids i "
            "ON i.seq BETWEEN c.first_seq AND c.last_seq GROUP BY c.first_seq, c.ids_count ORDER BY 1"
        ).fetchall()
    assert rows == [(1, 1), (2, 2)]


@pytest.mark.parametrize("parameter_bytes_max", [0, 1 << 20])
def test_a_claim_of_many_ids_takes_several_blocks(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, parameter_bytes_max: int
) -> None:
    """Blocks have 65,536 ids, and each block is forgotten separately."""
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", parameter_bytes_max)
    monkeypatch.setattr(postgres_ids, "BLOCK", 1 << 16)
    ids = pa.array([b"%d" % (number * 7 % 150_000) for number in range(200_000)])
    first = pa.array([number < 150_000 for number in range(200_000)])
    with PostgresLedger(postgres_dsn, retention=Retention(count=100_000)) as ledger:
        with ledger.transaction("g") as transaction:
            assert transaction.claim(ids).equals(first)
        with ledger.transaction("g") as transaction:
            assert transaction.claim([ids[0].as_py(), ids[1 << 16].as_py()]) == [False, False]
        with ledger.transaction("g") as transaction:
            transaction.connection.execute("UPDATE pykafka_groups SET ids_count = 170000")
        with ledger.transaction("g") as transaction:
            probe = [ids[0].as_py(), ids[(1 << 16) - 1].as_py(), ids[1 << 16].as_py()]
            assert transaction.claim(probe) == [True, True, False]
    with psycopg.connect(postgres_dsn) as connection:
        claims = connection.execute("SELECT ids_count FROM pykafka_claims ORDER BY 1").fetchall()
    assert claims == [(2,), (150_000 - (2 << 16),), (1 << 16,)]


def test_claims_of_an_earlier_version_are_read_and_forgotten_first(postgres_dsn: str) -> None:
    """In that version, all ids of a claim had the counter's number as their seq."""
    with PostgresLedger(postgres_dsn) as ledger, ledger.transaction("g") as transaction:
        for ids in ([b"a", b"b"], [b"c"]):
            execute = transaction.connection.execute
            execute(
                "INSERT INTO pykafka_claims (group_key, last_seq, ids_count, claimed_at_ms) "
                "VALUES (1, 0, %s, 0)",
                [len(ids)],
            )
            execute("UPDATE pykafka_claims SET last_seq = first_seq")
            execute(
                "INSERT INTO pykafka_ids SELECT max(first_seq), 1, unnest(%s::bytea[]) "
                "FROM pykafka_claims",
                [ids],
            )
        execute("UPDATE pykafka_groups SET ids_count = 3")
    with PostgresLedger(postgres_dsn, retention=Retention(count=3)) as ledger:
        with ledger.transaction("g") as transaction:
            assert transaction.claim([b"c", b"d", b"a", b"e"]) == [False, True, False, True]
        with ledger.transaction("g") as transaction:  # forgets only a and b
            assert transaction.claim([b"a", b"c", b"d", b"e"]) == [True, False, False, False]
        with ledger.transaction("g") as transaction:  # forgets c
            assert transaction.claim([b"d", b"e", b"a", b"c"]) == [False, False, False, True]
    with psycopg.connect(postgres_dsn) as connection:
        counts = "SELECT (SELECT count(*) FROM pykafka_ids), (SELECT ids_count FROM pykafka_groups)"
        assert connection.execute(counts).fetchall() == [(4, 4)]
