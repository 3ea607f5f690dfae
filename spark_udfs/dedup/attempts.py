"""Which attempts there were of each micro-batch: notes in the folder of a `dedup_stream`. Without Spark.

    batch-00000000000000000041-0000  a task of micro-batch 41 began, and none of a later one
    batch-00000000000000000041-0001  it was run again: what the attempt before added does not count

A note holds its attempt. That of a micro-batch with one attempt goes when a later micro-batch begins; those of others
stay until the driver has deleted what their first attempts added.
"""

import os
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from spark_udfs.dedup.disk import StoreError, create, sync_folder

__all__ = ["Attempt", "begin", "check_last", "forget_first_attempts", "last_attempts", "noted"]

_NOTE: Final = re.compile(r"batch-(\d{20})-(\d{4,})")


class Attempt(NamedTuple):
    """One execution of a micro-batch by Spark, as a `dedup_stream` sees it.

    Attributes:
        start: Of the `dedup_stream`, as its driver counted them in the folder.
        application: The id of Spark's application.
        execution: The number of the micro-batch's SQL execution in it.
    """

    start: int
    application: str
    execution: int

    def text(self) -> str:
        """The content of its note."""
        return f"{self.start} {self.application} {self.execution}"

    def mark(self) -> bytes:
        """8 bytes that stand for it in files."""
        return blake2b(self.text().encode(), digest_size=8).digest()


def begin(folder: Path, batch: int, attempt: Attempt) -> None:
    """Note, in one of its tasks, that this is the last attempt of ``batch``.

    Raises:
        StoreError: It is not, a later micro-batch began, or the attempt is of another `dedup_stream` of the query.
    """
    notes = noted(folder)
    _check_newest(folder, batch, notes)
    _note_last(folder, batch, notes.get(batch, 0), attempt)
    for older, count in notes.items():
        if older < batch and count == 1:
            _note_of(folder, older, 0).unlink(missing_ok=True)


def check_last(folder: Path, batch: int, attempt: Attempt) -> Mapping[int, int]:
    """See that this attempt of ``batch`` is still the last one.

    Returns:
        What is `noted`.

    Raises:
        StoreError: It is not.
    """
    notes = noted(folder)
    _check_newest(folder, batch, notes)
    if (found := _last(folder, batch, notes[batch])) != attempt:
        raise _begun_again(batch, found)
    return notes


def last_attempts(folder: Path, notes: Mapping[int, int]) -> Mapping[int, bytes]:
    """The marks of the last attempts of the micro-batches that were run again, of what is `noted`."""
    return {
        batch: _last(folder, batch, count).mark() for batch, count in notes.items() if count > 1
    }


def forget_first_attempts(folder: Path) -> None:
    """Leave one note of each micro-batch, that of its last attempt: what others added is gone."""
    for batch, count in noted(folder).items():
        for number in range(count - 2, 0, -1):
            _note_of(folder, batch, number).unlink(missing_ok=True)
        sync_folder(folder)
        os.replace(_note_of(folder, batch, count - 1), _note_of(folder, batch, 0))
    sync_folder(folder)


def _check_newest(folder: Path, batch: int, notes: Mapping[int, int]) -> None:
    newest = max(notes, default=batch)
    if newest > batch:
        raise StoreError(
            f"{folder} remembers micro-batch {newest}, and this is {batch}: the checkpoint is older than the "
            "folder. Take both from one time, or both new; asynchronous progress tracking, which writes the "
            "checkpoint late, does not go with it"
        )


def _note_last(folder: Path, batch: int, count: int, attempt: Attempt) -> None:
    """Note the attempt behind ``count`` notes of the micro-batch, unless the last one is of it."""
    number = max(0, count - 1)
    while True:
        found = _attempt_of(create(_note_of(folder, batch, number), attempt.text()))
        if found == attempt:
            return
        if found[1:] == attempt[1:]:
            raise StoreError(
                f"{folder} serves another dedup_stream of this query: each needs a folder of its own"
            )
        if (attempt.start, attempt.execution) < (found.start, found.execution):
            raise _begun_again(batch, found)
        number += 1


def _begun_again(batch: int, by: Attempt) -> StoreError:
    return StoreError(
        f"micro-batch {batch} was begun again meanwhile, by {by}: call dedup_stream again for a query that is to go on"
    )


def noted(folder: Path) -> dict[int, int]:
    """How many attempts there were of each micro-batch of which there are notes."""
    counts: dict[int, int] = {}
    for match in map(_NOTE.fullmatch, os.listdir(folder)):
        if match:
            counts[int(match[1])] = max(counts.get(int(match[1]), 0), int(match[2]) + 1)
    return counts


def _note_of(folder: Path, batch: int, number: int) -> Path:
    return folder / f"batch-{batch:020}-{number:04}"


def _last(folder: Path, batch: int, count: int) -> Attempt:
    """That of the last of ``count`` notes; others may be gone."""
    return _attempt_of(_note_of(folder, batch, count - 1).read_text())


def _attempt_of(text: str) -> Attempt:
    start, application, execution = text.split(" ")
    return Attempt(int(start), application, int(execution))
