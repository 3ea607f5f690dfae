"""A common interface to the databases for the ledgers' common tests."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import psycopg

from pykafka_core.idempotent import PostgresLedger, SQLiteLedger
from pykafka_core.idempotent.sql import SqlLedger
from tests.support.patience import PATIENCE_S


class Database(Protocol):
    placeholder: str
    address: str
    """The argument of `database_at` in another process."""

    def ledger(self, **options: Any) -> SqlLedger: ...
    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


class SQLiteDatabase:
    placeholder = "?"

    def __init__(self, path: Path) -> None:
        self.path, self.address = path, str(path)
        self.run("CREATE TABLE IF NOT EXISTS effects (value TEXT)")

    def ledger(self, **options: Any) -> SQLiteLedger:
        return SQLiteLedger(self.path, **options)

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement on a separate connection."""
        with closing(sqlite3.connect(self.path, timeout=PATIENCE_S)) as connection, connection:
            return connection.execute(statement, values).fetchall()


class PostgresDatabase:
    placeholder = "%s"

    def __init__(self, dsn: str) -> None:
        self.dsn = self.address = dsn
        self.run("CREATE TABLE IF NOT EXISTS effects (value text)")

    def ledger(self, **options: Any) -> PostgresLedger:
        return PostgresLedger(self.dsn, **options)

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement on a separate connection."""
        with psycopg.connect(self.dsn) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []


def database_at(address: str) -> Database:
    """Return the database of another process."""
    return PostgresDatabase(address) if "dbname=" in address else SQLiteDatabase(Path(address))


def effect(database: Database, connection: Any, *values: str) -> None:
    for value in values:
        connection.execute(f"INSERT INTO effects VALUES ({database.placeholder})", (value,))


def effects(database: Database) -> list[str]:
    return sorted(value for (value,) in database.run("SELECT value FROM effects"))
