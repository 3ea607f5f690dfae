"""The steps for the rows of a batch, and their order."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from pykafka_core.idempotent import SQLiteLedger
from spark_udfs.sink.processing import Done, Work
from spark_udfs.sink.rows.micro_batch import Rows


def test_ids_are_claimed_before_a_quarantine_or_an_effect_can_wait(tmp_path: Path) -> None:
    """Regression: tasks that share ids and quarantine rows deadlocked in the other order."""
    seen: list[tuple[list[str], int]] = []

    def note(connection: Any, rows: pa.Table) -> None:
        [(count,)] = connection.execute("SELECT count(*) FROM pykafka_ids").fetchall()
        seen.append((rows["value"].to_pylist(), count))

    rows = pa.table({"id": ["a", None, "b", "a"], "value": ["1", "2", "3", "4"]})
    work = Work(effect=note, quarantine=note, id_column="id")
    with SQLiteLedger(tmp_path / "l.db") as ledger, ledger.transaction("g") as transaction:
        assert work.process(transaction, Rows.all_of(rows)) == Done(processed=2, quarantined=1)
    assert seen == [(["2"], 2), (["1", "3"], 2)]
