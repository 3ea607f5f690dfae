"""Tasks that fail or are killed, and a database that is not there: faults of the crash suite outside of the ledger."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.idempotent.databases import SQLiteDatabase

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_FAULTS = ("task fails", "worker killed")
EXECUTOR_KILLED = "executor killed"
"""Only where the executor is not the driver."""


def through_python(df: "DataFrame", trap: Path) -> "DataFrame":
    """The same rows by way of a Python worker; the first to find the file ``trap`` does what it says, once."""

    def spring(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with suppress(FileNotFoundError):  # of two workers one takes it
                fault = trap.read_text()
                trap.unlink()
                if fault == "worker killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                if fault == EXECUTOR_KILLED:
                    _kill_the_executor(victim_of(trap))
                raise RuntimeError(fault)
            yield batch

    return df.mapInArrow(spring, df.schema)


def victim_of(trap: Path) -> Path:
    """Where the name of the program is noted that died in the executor's place."""
    return trap.with_name("victim")


def _kill_the_executor(victim: Path) -> None:
    executor = _parent(os.getppid())  # this worker's parent is a daemon
    victim.write_text(Path(f"/proc/{executor}/comm").read_text().strip())
    os.kill(executor, signal.SIGKILL)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def locked_by_another(database: SQLiteDatabase) -> Iterator[None]:
    """No transaction can begin within."""
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()
