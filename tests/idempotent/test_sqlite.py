"""Ledgers: behaviour that is specific to SQLite."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from pykafka_core.errors import (
    ConfigurationError,
    LedgerError,
    LedgerSchemaError,
    LedgerUnavailableError,
    UsageError,
)
from pykafka_core.idempotent import PartitionKey, SQLiteLedger
from tests.support.examples import closing_databases

KEY = PartitionKey(b"\1" * 16, "orders", 0)


@pytest.mark.parametrize("path", ["", ":memory:", "file:x?mode=memory", b"bytes", 5, None])
def test_path_without_a_lasting_file_is_rejected(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="database"):
        SQLiteLedger(path)


def test_a_relative_path_names_the_same_file_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SQLiteLedger("shop.db") as ledger:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        with ledger.transaction("g"):
            pass
        assert repr(ledger) == f"SQLiteLedger({tmp_path / 'shop.db'})"
    assert (tmp_path / "shop.db").exists()


def test_connection_of_a_function_is_used_with_its_settings() -> None:
    connections: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        connections.append(sqlite3.connect(":memory:", check_same_thread=False))
        connections[0].row_factory = sqlite3.Row
        return connections[0]

    with SQLiteLedger(connect) as ledger:
        for offset in (1, 2):
            with ledger.transaction("g") as transaction:
                assert transaction.marks() == ({KEY: 1} if offset == 2 else {})
                transaction.advance({KEY: offset})
        with pytest.raises(ZeroDivisionError), ledger.transaction("g") as transaction:
            1 / 0  # noqa: B018
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 2}  # a failed effect does not close the connection
    assert len(connections) == 1


def test_a_committed_mark_is_synced(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "l.db") as ledger, ledger.transaction("g") as transaction:
        pragma = transaction.connection.execute
        assert pragma("PRAGMA synchronous").fetchone() == (2,)
        assert pragma("PRAGMA journal_mode").fetchone() == ("wal",)


def test_executescript_in_an_effect_is_rejected(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "l.db") as ledger:
        with (
            pytest.raises(UsageError, match="executescript"),
            ledger.transaction("g") as transaction,
        ):
            transaction.connection.executescript("CREATE TABLE t (x)")
        with pytest.raises(UsageError, match="commit"), ledger.transaction("g") as transaction:
            transaction.connection.execute("ROLLBACK")


def test_effect_that_hides_its_commit_is_rejected(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "l.db") as ledger:
        with pytest.raises(UsageError, match="commit"), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
            with pytest.raises(sqlite3.DatabaseError):
                transaction.connection.commit()
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}


def overflow(connection: sqlite3.Connection) -> None:
    """Make SQLite report a full disk."""
    [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    connection.execute("INSERT INTO plain VALUES (zeroblob(1000000))")


def conflict(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT OR ROLLBACK INTO effects VALUES (?)", ("kept",))


def veto(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO effects VALUES ('vetoed')")


@pytest.mark.parametrize("cause", [conflict, overflow, veto])
@pytest.mark.parametrize("then", ["advance", "claim", "begin_batch", "write", "savepoint", None])
def test_rollback_that_the_effect_hides_loses_nothing(
    tmp_path: Path, cause: Any, then: str | None
) -> None:
    """SQLite itself rolled back, and all later statements were committed at once, even a mark
    without its effect.
    """
    path = tmp_path / "l.db"
    with closing(sqlite3.connect(path)) as outside, outside:
        outside.execute("CREATE TABLE plain (value)")
        outside.execute("CREATE TABLE effects (value UNIQUE)")
        outside.execute("INSERT INTO effects VALUES ('kept')")
        outside.execute(
            "CREATE TRIGGER veto BEFORE INSERT ON effects WHEN new.value = 'vetoed' "
            "BEGIN SELECT RAISE(ROLLBACK, 'vetoed'); END"
        )
    with SQLiteLedger(path) as ledger:
        with (
            pytest.raises(UsageError, match="rolled the ledger's transaction back") as raised,
            ledger.transaction("g") as transaction,
        ):
            connection = transaction.connection
            assert transaction.claim([b"id"]) == [True]
            # These statements are prepared now: SQLite does not call the authorizer again when they
            # run later.
            connection.execute("SAVEPOINT effect").execute("RELEASE effect")
            connection.execute("INSERT INTO effects VALUES (?)", ("first",))
            with suppress(sqlite3.Error):
                cause(connection)
            match then:
                case "advance":
                    transaction.advance({KEY: 7})
                case "claim":
                    transaction.claim([b"other"])
                case "begin_batch":
                    transaction.begin_batch("q", 1)
                case "write":
                    with suppress(sqlite3.Error):
                        connection.execute("INSERT INTO effects VALUES (?)", ("second",))
                case "savepoint":
                    with suppress(sqlite3.Error):
                        connection.execute("SAVEPOINT effect")
                        connection.execute("INSERT INTO effects VALUES (?)", ("second",))
                        transaction.advance({KEY: 7})
                        connection.execute("RELEASE effect")
        assert "all of it is undone" in str(raised.value)
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}
            assert transaction.batches() == {}
            assert transaction.claim([b"id", b"other"]) == [True, True]
            found = transaction.connection.execute("SELECT value FROM effects").fetchall()
            assert found == [("kept",)]


def test_error_that_rolls_back_is_propagated(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "l.db") as ledger:
        with pytest.raises(sqlite3.IntegrityError), ledger.transaction("g") as transaction:
            transaction.connection.execute("CREATE TABLE effects (value UNIQUE)")
            for _ in range(2):
                conflict(transaction.connection)


def test_unread_rows_of_the_effect_do_not_block_the_commit(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "l.db") as ledger:
        with ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
            unread = transaction.connection.execute("VALUES (1), (2), (3)")
            assert unread.fetchone() == (1,)
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 1}
        assert unread is not None


def test_effect_that_closes_the_connection_loses_only_its_transaction(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "l.db") as ledger:
        with pytest.raises(LedgerUnavailableError), ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
            transaction.connection.close()
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}


def test_replaced_file_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with SQLiteLedger(path) as ledger:
        with ledger.transaction("g") as transaction:
            transaction.advance({KEY: 1})
        with (
            pytest.raises(LedgerUnavailableError, match="place"),
            ledger.transaction("g") as transaction,
        ):
            transaction.advance({KEY: 2})
            path.rename(tmp_path / "away.db")
            path.touch()
        (tmp_path / "away.db").rename(path)
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {KEY: 1}


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "nowhere" / "l.db") as ledger:
        with pytest.raises(LedgerUnavailableError, match="nowhere"):
            ledger.transaction("g").__enter__()
        (tmp_path / "nowhere").mkdir()
        with ledger.transaction("g") as transaction:
            assert transaction.marks() == {}


def test_file_that_is_not_a_database_is_rejected_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, " * 100)
    with SQLiteLedger(path) as ledger, pytest.raises(LedgerSchemaError, match="notes"):
        ledger.transaction("g").__enter__()
    assert path.read_text().startswith("not a database")


def test_file_that_cannot_be_opened_leaves_no_open_connection(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, " * 100)
    with closing_databases(), SQLiteLedger(path) as ledger, pytest.raises(LedgerSchemaError):
        ledger.transaction("g").__enter__()


def test_damaged_database_is_a_ledger_error(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with SQLiteLedger(path) as ledger, ledger.transaction("g") as transaction:
        transaction.claim([b"%d" % number for number in range(5000)])
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with SQLiteLedger(path) as ledger, pytest.raises(LedgerError):
        ledger.transaction("g").__enter__()
