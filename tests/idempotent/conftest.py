from pathlib import Path

import pytest

from tests.idempotent.databases import Database, PostgresDatabase, SQLiteDatabase


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database of each kind, with a table for effects."""
    if request.param == "postgres":
        return PostgresDatabase(request.getfixturevalue("postgres_dsn"))
    return SQLiteDatabase(tmp_path / "ledger.db")
