"""Reads and writes small files in a directory where their paths may be of any type.

Another program may have put a FIFO, a symbolic link, a directory or gigabytes at the path of a
file. An open neither follows a link nor waits for the other end of a FIFO, only regular files are
read, up to a limit, and a new file is written under a name that was free: nothing outside is ever
written.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pykafka_core.errors import StorageError

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

_UNKNOWN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def storage_errors(intent: str, path: Path) -> Iterator[None]:
    """Convert an OSError about ``path`` to a `StorageError` with advice.

    Args:
        intent: The attempted action, for ``cannot <intent> <path>``.
        path: The file or directory.
    """
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "")
        reason = error.strerror or str(error)
        raise StorageError(f"cannot {intent} {path}: {reason}{advice}") from error


_ADVICE = {
    errno.ENOSPC: "; free some space on its disk",
    errno.EDQUOT: "; free some space on its disk",
    errno.EACCES: "; give this user the right to it",
    errno.EISDIR: "; a file belongs there, move it away",
    errno.ELOOP: "; symbolic links are not followed here, put the file itself there",
    errno.ENOTDIR: "; a directory belongs there, move it away",
    errno.ENXIO: "; a regular file belongs there, move it away",
}


def open_regular(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file.

    Args:
        path: The file.
        flags: Flags of ``os.open``; links are not followed, and the open never waits.

    Raises:
        StorageError: It is not a regular file.
        OSError: It cannot be opened.
    """
    descriptor = os.open(path, flags | _UNKNOWN_FILE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path} is not a regular file; move it away")
    return descriptor


def read_file(path: Path, size_max: int) -> bytes | None:
    """Return a file's content, None if there is no such file.

    Raises:
        StorageError: It is not a regular file, is larger than ``size_max`` bytes or cannot be read.
    """
    with storage_errors("read", path):
        try:
            descriptor = open_regular(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size > size_max:
                raise StorageError(
                    f"{path} is larger than the {size_max} bytes it may have; restore it"
                )
            return file.read(size_max)


def write_atomically(path: Path, content: bytes, suffix: str = ".tmp") -> None:
    """Replace a file: after a power failure during the call it has the old or the new content; on
    return the new one.

    Args:
        path: Replaced, whatever kind of file it is.
        content: The new content.
        suffix: Suffix of the temporary file; an existing one is removed.

    Raises:
        OSError: It cannot be written; the old content is still there.
    """
    temporary = path.with_name(path.name + suffix)
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _UNKNOWN_FILE, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):  # the disk may be full: remove the incomplete file
            temporary.unlink()
        raise
    sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Create a directory; on return it is durable, even if an earlier run created it.

    Raises:
        OSError: It cannot be created, or the path is not a directory; a link to a directory is not
            accepted.
    """
    with suppress(FileExistsError):
        os.mkdir(path)
    # Opened only as a check: a link fails here.
    os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY | _UNKNOWN_FILE))
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable.

    Raises:
        OSError: The disk failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
