"""Which attempts there were of the newest micro-batch: notes in the folder of a `dedup_stream`. Without Spark.

    batch-00000000000000000041.000003.000017.5f0c1d2e  a task of micro-batch 41 began, in this attempt

A note is an empty file, and its name says all. Notes are in order by micro-batch, then attempt: a task begins only if
none is after its own. Then notes before its own can go; if one is of the same micro-batch, what that attempt added is
superseded first (`spark_udfs.dedup.increments`).
"""

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self

from spark_udfs.dedup.disk import StoreError, create_empty

__all__ = ["ATTEMPT", "Attempt", "Note", "begin", "noted"]

ATTEMPT: Final = r"(\d{6,})\.(\d{6,})\.([0-9a-f]{8})"
"""Of the name of an `Attempt`."""

_NOTE: Final = re.compile(rf"batch-(\d{{20}})\.{ATTEMPT}")


class Attempt(NamedTuple):
    """One execution of a micro-batch by Spark, as a `dedup_stream` sees it. A later one is greater.

    Attributes:
        start: Of the `dedup_stream`, as its driver counted them in the folder.
        execution: The number of the micro-batch's SQL execution in Spark's application.
        application: 8 hexadecimal digits that stand for that one's id.
    """

    start: int
    execution: int
    application: str

    @classmethod
    def of(cls, start: int, execution: int, application: str) -> Self:
        """An attempt in the application of that id."""
        digest = blake2b(application.encode(), digest_size=4)
        return cls(start, execution, digest.hexdigest())

    @classmethod
    def parse(cls, start: str, execution: str, application: str) -> Self:
        """From the groups of `ATTEMPT`."""
        return cls(int(start), int(execution), application)

    def name(self) -> str:
        """Its part of the name of a note or a file."""
        return f"{self.start:06}.{self.execution:06}.{self.application}"


class Note(NamedTuple):
    """That a task of an attempt began. A later attempt's is greater, and so is a later micro-batch's."""

    batch: int
    attempt: Attempt

    def name(self) -> str:
        """That of its file."""
        return f"batch-{self.batch:020}.{self.attempt.name()}"


def begin(folder: Path, note: Note) -> list[Note]:
    """Note that a task begins.

    Returns:
        The notes before this one: the caller deletes them.

    Raises:
        StoreError: A later micro-batch or a later attempt began, or this one is of another `dedup_stream` of the query.
    """
    notes = noted(folder)
    _check_last(folder, note, notes)
    if note not in notes:
        create_empty(folder / note.name())
        notes = noted(folder)  # of two that begin at once, one sees the other
        _check_last(folder, note, notes)
    return [other for other in notes if other < note]


def noted(folder: Path) -> list[Note]:
    """The notes in the folder of a `dedup_stream`."""
    matches = map(_NOTE.fullmatch, os.listdir(folder))
    return [Note(int(match[1]), Attempt.parse(*match.groups()[1:])) for match in matches if match]


def _check_last(folder: Path, note: Note, notes: list[Note]) -> None:
    for other in notes:
        if other.batch == note.batch and _are_of_one_execution(other.attempt, note.attempt):
            raise StoreError(
                f"{folder} serves another dedup_stream of this query: each needs a folder of its own"
            )
    last = max([note, *notes])
    if last.batch > note.batch:
        raise StoreError(
            f"{folder} remembers micro-batch {last.batch}, and this is {note.batch}: the checkpoint is older than the "
            "folder. Take both from one time, or both new; asynchronous progress tracking, which writes the "
            "checkpoint late, does not go with it"
        )
    if last > note:
        raise StoreError(
            f"micro-batch {note.batch} was begun again meanwhile, by {last.attempt}: call dedup_stream again for a "
            "query that is to go on"
        )


def _are_of_one_execution(one: Attempt, other: Attempt) -> bool:
    """Whether they are of two `dedup_stream` in one query."""
    return one[1:] == other[1:] and one.start != other.start
