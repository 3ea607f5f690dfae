"""CPU time of claims and of rows in PostgreSQL, in the client and the server: best of some rounds.

Claims have 100,000 ids of 16 bytes and are cumulative; the first is ignored. Rows are (integer,
bigint, text of 100 bytes), by `binary_copy` and by psycopg's ``write_row``. The server is that of
the tests, without fsync; the work of its other processes is not counted.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from bench.conftest import Noted
from pykafka_core.idempotent import PostgresLedger
from pykafka_core.idempotent.postgres import binary_copy
from pykafka_core.idempotent.postgres import ids as postgres_ids

ROUNDS = 6
COUNT = 100_000
TYPES = ["int4", "int8", "text"]


def cpu_of(connection: Any, call: Callable[[], object]) -> tuple[float, float]:
    """Return CPU seconds of this process and of the server's."""

    def now() -> tuple[float, float]:
        server = Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]
        return time.process_time(), int(server) / 1e9

    begun = now()
    call()
    client, server = (end - start for start, end in zip(begun, now(), strict=True))
    return client, server


def note_best(noted: Noted, name: str, rounds: list[tuple[float, float]]) -> None:
    for where, seconds in zip(("client", "server"), zip(*rounds, strict=True), strict=True):
        noted(f"{name}: {where}", min(seconds) / COUNT * 1e6, "µs")


@pytest.mark.parametrize("retries", [0.0, 0.3])
@pytest.mark.parametrize("way", ["list", "parameter", "table"])
def test_claims_of_100_000_ids(
    noted: Noted,
    postgres_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    retries: float,
) -> None:
    monkeypatch.setattr(postgres_ids, "PARAMETER_BYTES_MAX", 0 if way == "table" else 1 << 24)
    rng = random.Random(4)
    seen: list[bytes] = []
    rounds = []
    with PostgresLedger(postgres_dsn) as ledger:
        for _ in range(ROUNDS):
            ids = [
                rng.choice(seen) if seen and rng.random() < retries else rng.randbytes(16)
                for _ in range(COUNT)
            ]
            expected = len(set(ids) - set(seen))
            seen += ids
            given: Any = ids if way == "list" else pa.array(ids)
            masks: list[Any] = []
            with ledger.transaction("bench") as transaction:
                claim = transaction.claim
                rounds.append(
                    cpu_of(transaction.connection, lambda: masks.append(claim(given)))  # noqa: B023
                )
            assert sum(pa.array(masks[0]).to_pylist()) == expected
    note_best(noted, f"an id of a claim by {way}, {retries:.0%} retries", rounds[1:])


def copy_stream(rows: pa.Table, copy: Any) -> None:
    for piece in binary_copy.copy_stream(rows.to_reader()):
        copy.write(piece)


def write_rows(rows: pa.Table, copy: Any) -> None:
    copy.set_types(TYPES)
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        copy.write_row(row)


@pytest.mark.parametrize("way", [copy_stream, write_rows])
def test_copy_of_100_000_rows(
    noted: Noted, postgres_dsn: str, way: Callable[[pa.Table, Any], None]
) -> None:
    partitions = pa.array([number % 8 for number in range(COUNT)], pa.int32())
    texts = [f"{number:0100}" for number in range(COUNT)]
    rows = pa.table({"partition": partitions, "place": range(COUNT), "value": texts})
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE effects (partition int4, place int8, value text)")

        def copied() -> None:
            cursor = connection.cursor()
            with cursor.copy("COPY effects FROM STDIN (FORMAT binary)") as copy:
                way(rows, copy)

        rounds = []
        for _ in range(ROUNDS):
            connection.execute("TRUNCATE effects")
            rounds.append(cpu_of(connection, copied))
            assert connection.execute("SELECT count(*), sum(place) FROM effects").fetchall() == [
                (COUNT, COUNT * (COUNT - 1) // 2)
            ]
    note_best(noted, f"a row by {way.__name__}", rounds[1:])
