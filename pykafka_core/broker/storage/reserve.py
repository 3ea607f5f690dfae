"""Reserved disk space for metadata, so that topics can be deleted, and a broker started, on a full
disk.

Theory of operation. A file of `RESERVE_BYTES` in the data directory has allocated space but no
content. When a write that the broker needs finds the disk full, the file is shrunk by one step and
the write is retried. It shrinks in steps, because producers compete for freed space: all of it
would be used up immediately. When there is space again, the file grows back, after the producers
got some of it.

A start has priority over deletions, and these over changes that make metadata grow (`Need`):
clients that create topics cannot use the space for deletions, which free the disk, nor the space
for the next start.

Only the file size changes and nothing is synced: after a power failure the next start uses the size
that it finds.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from pykafka_core.broker import native
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.storage.files import OUT_OF_SPACE, open_regular, storage_errors
from pykafka_core.errors import StorageError

RESERVE_FILE = "metadata.reserve"
RESERVE_BYTES = 1024 * 1024
"""Enough to delete some ten thousand topics."""
STEP_BYTES = 64 * 1024


class Need(IntEnum):
    """The purpose of a step; the number is the part of the reserve, in bytes, that is kept for
    higher priorities.
    """

    START = 0
    DELETION = RESERVE_BYTES // 4
    GROWTH = RESERVE_BYTES // 2


CHECK_INTERVAL_MS = 5000

_log = GuardedLogger(__name__)


class Reserve:
    """The reserve of one data directory. Several threads may need it while the disk is full.

    Args:
        path: The file. It is not touched before `fill`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self._is_usable = True
        self._lock = native.Lock()

    def is_short(self) -> bool:
        """Return whether the disk has less free space than the size of a full reserve."""
        return self._free_bytes() < RESERVE_BYTES

    def fill(self) -> None:
        """Fill the reserve as far as the disk has space.

        Raises:
            StorageError: The path is not a regular file.
        """
        with (
            self._lock,
            self._opened("reserve space in", os.O_RDWR | os.O_CREAT) as descriptor,
        ):
            if os.fstat(descriptor).st_nlink != 1:
                raise StorageError(f"{self._path} has a second name; move it away")
            self._size = _allocate(descriptor)

    def refill(self) -> None:
        """Grow the reserve if there is again space for it and for others.

        Free while the reserve is full.
        """
        if self._size >= RESERVE_BYTES or not self._is_usable:
            return
        try:
            if self._free_bytes() >= 2 * RESERVE_BYTES:
                self.fill()
        except StorageError as error:
            self._give_up(error)

    def make_way(self, need: Need) -> bool:
        """Release one step after a failed write, if the disk is short of space; return whether it
        was released.
        """
        try:
            return self.is_short() and self.release(need)
        except StorageError as error:
            self._give_up(error)
            return False

    def is_kept_from(self, need: Need) -> bool:
        """Return whether ``need`` may not use the rest of the reserve, and the disk is short of
        space.
        """
        try:
            return self._is_usable and self._size <= need and self.is_short()
        except StorageError as error:
            self._give_up(error)
            return False

    def release(self, need: Need) -> bool:
        """Release one step; return False if ``need`` may not use the rest.

        Raises:
            StorageError: The path is no longer a regular file.
        """
        with self._lock:
            if self._size <= need:
                return False
            size = max(need, self._size - STEP_BYTES)
            with self._opened("give back space of", os.O_WRONLY) as descriptor:
                os.ftruncate(descriptor, size)
            self._size = size
        _log.warning("the disk is full: metadata is written with the reserve, %d bytes left", size)
        return True

    def spend_on(self, write: Callable[[], None]) -> None:
        """Call ``write``, which a start needs, and retry it while the disk is full and the reserve
        is not empty.

        Raises:
            StorageError: The path of the reserve is not a regular file.
            OSError: Raised by ``write``; for a full disk only when the reserve is empty.
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
    """Allocate the whole reserve, or as many steps as fit; return the allocated size."""
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
