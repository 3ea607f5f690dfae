"""The attempts of the newest micro-batch: notes in the folder of a `dedup_stream`. Without Spark.

    batch-00000000000000000041.000003.000017.5f0c1d2e  a task of micro-batch 41 started, attempt
                                                       000003.000017.5f0c1d2e

A note is an empty file; its name holds all information. Notes are ordered by micro-batch, then
attempt. A task starts only if no note is later than its own. It may then delete the earlier notes;
if one of them is of the same micro-batch, the files of that attempt are superseded first
(`spark_udfs.dedup.increments`).
"""

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self

from spark_udfs.dedup.disk import StoreError, create_empty

__all__ = ["ATTEMPT", "Attempt", "Note", "begin", "noted"]

ATTEMPT: Final = r"(\d{6,})\.(\d{6,})\.([0-9a-f]{8})"
"""Pattern of `Attempt.name`."""

_NOTE: Final = re.compile(rf"batch-(\d{{20}})\.{ATTEMPT}")


class Attempt(NamedTuple):
    """One execution of a micro-batch by Spark, as seen by a `dedup_stream`. Later ones are greater.

    Attributes:
        start: Number of the `dedup_stream`, as its driver counted them in the folder.
        execution: The number of the micro-batch's SQL execution in Spark's application.
        application: Hash of the application's id, as 8 hexadecimal digits.
    """

    start: int
    execution: int
    application: str

    @classmethod
    def of(cls, start: int, execution: int, application: str) -> Self:
        """Return an attempt in the application with this id."""
        digest = blake2b(application.encode(), digest_size=4)
        return cls(start, execution, digest.hexdigest())

    @classmethod
    def parse(cls, start: str, execution: str, application: str) -> Self:
        """Return the attempt of a match of `ATTEMPT`'s groups."""
        return cls(int(start), int(execution), application)

    def name(self) -> str:
        """Return its part of the name of a note or file."""
        return f"{self.start:06}.{self.execution:06}.{self.application}"


class Note(NamedTuple):
    """Records that a task of an attempt started. Notes are ordered by micro-batch, then attempt."""

    batch: int
    attempt: Attempt

    def name(self) -> str:
        """Return the name of its file."""
        return f"batch-{self.batch:020}.{self.attempt.name()}"


def begin(folder: Path, note: Note) -> list[Note]:
    """Record that a task starts.

    Returns:
        Earlier notes, which the caller must delete.

    Raises:
        StoreError: A later micro-batch or attempt has started, or another `dedup_stream` of the
            same query uses the folder.
    """
    notes = noted(folder)
    _check_last(folder, note, notes)
    if note not in notes:
        create_empty(folder / note.name())
        notes = noted(folder)  # if two tasks start concurrently, at least one sees the other
        _check_last(folder, note, notes)
    return [other for other in notes if other < note]


def noted(folder: Path) -> list[Note]:
    """Return the notes in the folder of a `dedup_stream`."""
    matches = map(_NOTE.fullmatch, os.listdir(folder))
    return [Note(int(match[1]), Attempt.parse(*match.groups()[1:])) for match in matches if match]


def _check_last(folder: Path, note: Note, notes: list[Note]) -> None:
    for other in notes:
        if other.batch == note.batch and _are_of_one_execution(other.attempt, note.attempt):
            raise StoreError(
                f"{folder} serves another dedup_stream of this query: each needs its own folder"
            )
    last = max([note, *notes])
    if last.batch > note.batch:
        raise StoreError(
            f"{folder} remembers micro-batch {last.batch}, and this is {note.batch}: the checkpoint is older than the "
            "folder. Use both from the same time, or both new; asynchronous progress tracking, which writes the "
            "checkpoint late, does not go with it"
        )
    if last > note:
        raise StoreError(
            f"micro-batch {note.batch} was started again, by {last.attempt}: call dedup_stream again for a "
            "query that must continue"
        )


def _are_of_one_execution(one: Attempt, other: Attempt) -> bool:
    """Return whether both are of the same execution, but of two `dedup_stream` in one query."""
    return one[1:] == other[1:] and one.start != other.start
