"""Tasks that fail or are killed, and a database that is not there: faults of the crash suite outside of the ledger."""

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from tests.idempotent.databases import SQLiteDatabase
from tests.support.processes.crash import Crash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_FAULTS = ("task fails", "worker killed")
EXECUTOR_KILLED = "executor killed"
"""Only where the executor is not the driver."""


def through_python(df: "DataFrame", trap: Path) -> "DataFrame":
    """The same rows by way of a Python worker; the first to find the file ``trap`` does what it says, once.

    Second runs of tasks are noted.
    """

    def spring(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            second_runs_of(trap).touch()
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


class DriversCrash(Crash):
    """One that tasks pass by."""

    def reach(self, point: str) -> None:
        if TaskContext.get() is None:
            super().reach(point)


class TrappedCrash(Crash):
    """The first task to come to the point that the file ``trap`` names dies there: its worker, by SIGKILL."""

    def __init__(self, trap: Path) -> None:
        self._trap = trap
        self._sprung: Crash | None = None

    def reach(self, point: str) -> None:
        if TaskContext.get() is None:
            return
        with suppress(FileNotFoundError):  # of two workers one takes it
            if self._trap.read_text() == point:
                self._trap.unlink()
                self._sprung = Crash(point, spin=random.randrange(100_000))
        if self._sprung is not None:
            self._sprung.reach(point)


def victim_of(trap: Path) -> Path:
    """Where the name of the program is noted that died in the executor's place."""
    return trap.with_name("victim")


def second_runs_of(trap: Path) -> Path:
    """The file that is there if a task ran twice."""
    return trap.with_name("second run")


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
