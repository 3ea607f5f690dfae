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

__all__ = ["Attempt", "begin", "forget_first_attempts", "last_attempts", "noted"]

_NOTE: Final = re.compile(r"batch-(\d{20})-(\d{4,})")


class Attempt(NamedTuple):
    """One execution of a micro-batch by Spark, as a `dedup_stream` sees it.

    Attributes:
        application: The id of Spark's application.
        execution: The number of the micro-batch's SQL execution in it.
        stream: Of the `dedup_stream`; another one in the same query has another.
    """

    application: str
    execution: str
    stream: str

    def mark(self) -> bytes:
        """8 bytes that stand for it in files."""
        return blake2b(" ".join(self).encode(), digest_size=8).digest()


def begin(folder: Path, batch: int, attempt: Attempt) -> None:
    """Note, in one of its tasks, that this is the last attempt of ``batch``.

    Raises:
        StoreError: It is not, a later micro-batch began, or the attempt is of another `dedup_stream` of the query.
    """
    notes = noted(folder)
    newest = max(notes, default=batch)
    if newest > batch:
        raise StoreError(
            f"{folder} remembers micro-batch {newest}, and this is {batch}: the checkpoint is older than the "
            "folder. Take both from one time, or both new; asynchronous progress tracking, which writes the "
            "checkpoint late, does not go with it"
        )
    _note_last(folder, batch, notes.get(batch, 0), attempt)
    for older, count in notes.items():
        if older < batch and count == 1:
            _note_of(folder, older, 0).unlink(missing_ok=True)


def _note_last(folder: Path, batch: int, count: int, attempt: Attempt) -> None:
    """Note the attempt behind ``count`` notes of the micro-batch, unless the last one is of it."""
    number = max(0, count - 1)
    while True:
        text = create(_note_of(folder, batch, number), " ".join(attempt))
        found = Attempt(*text.split(" "))
        if found == attempt:
            return
        if found[:2] == attempt[:2]:
            raise StoreError(
                f"{folder} serves another dedup_stream of this query: each needs a folder of its own"
            )
        if number and attempt in _attempts(folder, batch, number):
            raise StoreError(f"micro-batch {batch} was begun again meanwhile, by {found}")
        number += 1


def last_attempts(folder: Path) -> Mapping[int, bytes]:
    """The marks of the last attempts of the micro-batches that were run again."""
    return {
        batch: _attempts(folder, batch, count)[-1].mark()
        for batch, count in noted(folder).items()
        if count > 1
    }


def forget_first_attempts(folder: Path) -> None:
    """Leave one note of each micro-batch, that of its last attempt: what others added is gone."""
    for batch, count in noted(folder).items():
        os.replace(_note_of(folder, batch, count - 1), _note_of(folder, batch, 0))
        for number in range(1, count - 1):
            _note_of(folder, batch, number).unlink(missing_ok=True)
    sync_folder(folder)


def noted(folder: Path) -> dict[int, int]:
    """How many attempts there were of each micro-batch of which there are notes."""
    counts: dict[int, int] = {}
    for match in map(_NOTE.fullmatch, os.listdir(folder)):
        if match:
            counts[int(match[1])] = max(counts.get(int(match[1]), 0), int(match[2]) + 1)
    return counts


def _note_of(folder: Path, batch: int, number: int) -> Path:
    return folder / f"batch-{batch:020}-{number:04}"


def _attempts(folder: Path, batch: int, count: int) -> list[Attempt]:
    """The first ``count`` of a micro-batch."""
    texts = (_note_of(folder, batch, number).read_text() for number in range(count))
    return [Attempt(*text.split(" ")) for text in texts]
