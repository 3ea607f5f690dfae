from pathlib import Path

import pytest

from tests.idempotent.databases import Database, SQLiteDatabase


@pytest.fixture(params=["sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database of each kind, with a table for effects."""
    return SQLiteDatabase(tmp_path / "ledger.db")
