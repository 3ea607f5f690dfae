"""Faults of the crash suite outside of the ledger: failing or killed tasks, a missing database."""

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
"""Only possible if the executor is not the driver."""


def through_python(df: "DataFrame", trap: Path) -> "DataFrame":
    """Pass the rows through a Python worker; the first one that finds ``trap`` executes its fault.

    A second run of a task is recorded.
    """

    def spring(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            second_runs_of(trap).touch()
        for batch in batches:
            with suppress(FileNotFoundError):  # another worker may have taken it
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
    """A crash that does not happen in tasks."""

    def reach(self, point: str) -> None:
        if TaskContext.get() is None:
            super().reach(point)


class TrappedCrash(Crash):
    """The first task at the point in the file ``trap`` dies there: its worker gets SIGKILL."""

    def __init__(self, trap: Path) -> None:
        self._trap = trap
        self._sprung: Crash | None = None

    def reach(self, point: str) -> None:
        if TaskContext.get() is None:
            return
        with suppress(FileNotFoundError):  # another worker may have taken it
            if self._trap.read_text() == point:
                self._trap.unlink()
                self._sprung = Crash(point, spin=random.randrange(100_000))
        if self._sprung is not None:
            self._sprung.reach(point)


def victim_of(trap: Path) -> Path:
    """Return the file for the name of the program that was killed as the executor."""
    return trap.with_name("victim")


def second_runs_of(trap: Path) -> Path:
    """Return the file that exists if a task ran twice."""
    return trap.with_name("second run")


def _kill_the_executor(victim: Path) -> None:
    executor = _parent(os.getppid())  # this worker's parent is a daemon
    victim.write_text(Path(f"/proc/{executor}/comm").read_text().strip())
    os.kill(executor, signal.SIGKILL)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def locked_by_another(database: SQLiteDatabase) -> Iterator[None]:
    """Lock the database, so that no other transaction can start."""
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()
