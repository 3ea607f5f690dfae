"""The demo's table of delays per carrier and hour, in SQLite."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from .retries import CarrierHour, Delays

DATABASE: Final = "delays.db"


def open_totals(path: Path) -> None:
    """Create the table if it does not exist."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS delays (carrier TEXT, hour TEXT, flights INTEGER, "
            "landed INTEGER, minutes INTEGER, PRIMARY KEY (carrier, hour)) WITHOUT ROWID"
        )


def add_delays(
    connection: sqlite3.Connection, rows: Iterable[tuple[str, str, int, int, int | None]]
) -> None:
    """Add (carrier, hour, flights, landed, minutes) to the existing totals; the caller commits."""
    connection.executemany(
        "INSERT INTO delays VALUES (?, ?, ?, ?, ifnull(?, 0)) ON CONFLICT (carrier, hour) DO UPDATE SET "
        "flights = flights + excluded.flights, landed = landed + excluded.landed, "
        "minutes = minutes + excluded.minutes",
        rows,
    )


def read_delays(path: Path) -> dict[CarrierHour, Delays]:
    """Return the totals so far."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT carrier, hour, flights, landed, minutes FROM delays")
        return {(carrier, hour): Delays(*sums) for carrier, hour, *sums in rows}
