"""Space kept back for metadata: with it topics can be deleted, and a broker started, on a full disk.

Theory of operation. A file of `RESERVE_BYTES` stands in the data directory and holds nothing. A write
that the broker cannot do without, and that found the disk full, makes the file a step smaller and is
tried again: a step, because producers want what becomes free as well, so all at once would be gone
at once. When there is space again the file grows back, after the producers had some of it.

A start comes before deletions, and these before all that makes metadata grow (`Need`): clients that create topics
cannot spend what would free the disk, nor what the next start needs.

Only sizes are changed and nothing is synced: after a power cut the next start sees what is there.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.broker.storage.files import OUT_OF_SPACE, open_regular, storage_errors
from pykafka_core.errors import StorageError

RESERVE_FILE = "metadata.reserve"
RESERVE_BYTES = 1024 * 1024
"""Deletes some ten thousand topics."""
STEP_BYTES = 64 * 1024


class Need(IntEnum):
    """What a step is for; the number is how many bytes of the reserve are kept from it, for those before it."""

    START = 0
    DELETION = RESERVE_BYTES // 4
    GROWTH = RESERVE_BYTES // 2


CHECK_INTERVAL_MS = 5000

_log = GuardedLogger(__name__)


class Reserve:
    """The reserve of one data directory. Belongs to one thread at a time.

    Args:
        path: The file. Nothing is done to it before `fill`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self._is_usable = True

    def is_short(self) -> bool:
        """Whether the disk has less space than the reserve is meant to be."""
        return self._free_bytes() < RESERVE_BYTES

    def fill(self) -> None:
        """Take as much of the reserve as the disk has space for.

        Raises:
            StorageError: Something else stands at its place.
        """
        with self._opened("reserve space in", os.O_RDWR | os.O_CREAT) as descriptor:
            if os.fstat(descriptor).st_nlink != 1:
                raise StorageError(f"{self._path} has a second name; move it away")
            self._size = _allocate(descriptor)

    def refill(self) -> None:
        """Grow back if there is space again for the reserve and for others. Costs nothing while it is whole."""
        if self._size >= RESERVE_BYTES or not self._is_usable:
            return
        try:
            if self._free_bytes() >= 2 * RESERVE_BYTES:
                self.fill()
        except StorageError as error:
            self._give_up(error)

    def make_way(self, need: Need) -> bool:
        """After a write of an unknown fate: `release` if the disk is short of space, which may be why."""
        try:
            return self.is_short() and self.release(need)
        except StorageError as error:
            self._give_up(error)
            return False

    def is_kept_from(self, need: Need) -> bool:
        """Whether what is left is not for ``need``, and the disk has no more than that."""
        try:
            return self._is_usable and self._size <= need and self.is_short()
        except StorageError as error:
            self._give_up(error)
            return False

    def release(self, need: Need) -> bool:
        """Give back one step; False if nothing is left for ``need``.

        Raises:
            StorageError: Something else stands at its place now.
        """
        if self._size <= need:
            return False
        size = max(need, self._size - STEP_BYTES)
        with self._opened("give back space of", os.O_WRONLY) as descriptor:
            os.ftruncate(descriptor, size)
        self._size = size
        _log.warning("the disk is full: metadata is written with the reserve, %d bytes left", size)
        return True

    def spend_on(self, write: Callable[[], None]) -> None:
        """Call ``write``, which a start needs, as often as it takes while the disk is full and the reserve gives.

        Raises:
            StorageError: Something else stands at the reserve's place.
            OSError: As ``write``; of a full disk only when the reserve is empty.
        """
        while True:
            try:
                return write()
            except OSError as error:
                if error.errno not in OUT_OF_SPACE or not self.release(Need.START):
                    raise

    @contextmanager
    def _opened(self, intent: str, flags: int) -> Iterator[int]:
        with storage_errors(intent, self._path):
            descriptor = open_regular(self._path, flags)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def _free_bytes(self) -> int:
        with storage_errors("ask for the free space of", self._path.parent):
            status = os.statvfs(self._path.parent)
        return status.f_bavail * status.f_frsize

    def _give_up(self, error: StorageError) -> None:
        self._size, self._is_usable = 0, False
        _log.error("there is no reserve for metadata any more: %s", error)


def _allocate(descriptor: int) -> int:
    """Allocate all of it, or in steps what there is space for; returns the size that was reached."""
    for size in range(RESERVE_BYTES, 0, -STEP_BYTES):
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in OUT_OF_SPACE:
                raise
            os.ftruncate(descriptor, size - STEP_BYTES)  # a part of it may have been allocated
        else:
            os.ftruncate(descriptor, size)
            return size
    return 0
