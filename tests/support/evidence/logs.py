"""The output of child processes, kept for the report of a failed test.

Give a child the file of `new_log` as its stderr (and stdout, if no thread reads it), or
`watch` the file that it writes anyway. An unread pipe is worse than a lost log: once it is full,
the child blocks.
"""

import tempfile
import time
from collections import deque
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, Protocol

LINES_MAX = 200
BYTES_MAX = 64 * 1024
SOURCES_MAX = 200
"""Sources that are remembered; a run with more forgets the oldest."""


class Source(Protocol):
    """A log that grows while its process runs."""

    name: str

    def changed_at(self) -> float:
        """Return the time of the last write, or of its registration, in seconds since the epoch."""

    def tail(self) -> str:
        """Return its end, of at most `LINES_MAX` lines and `BYTES_MAX` bytes."""


class LogFile:
    """A file that a child process writes to. It may be missing: a test may remove its directory."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self._registered_at = time.time()

    def changed_at(self) -> float:
        """See `Source`."""
        written_at = self.path.stat().st_mtime if self.path.exists() else 0
        return max(self._registered_at, written_at)

    def tail(self) -> str:
        """See `Source`."""
        return tail_of(self.path) if self.path.exists() else f"({self.path} is gone)"


class LineBuffer:
    """The last lines that a thread of ours has read from a process.

    `append` is safe on any thread.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._changed_at = time.time()
        self._lines: deque[str] = deque(maxlen=LINES_MAX)

    def append(self, line: str) -> None:
        """Keep the end of a line, with its newline."""
        self._changed_at = time.time()
        self._lines.append(line[-BYTES_MAX:])

    def changed_at(self) -> float:
        """See `Source`."""
        return self._changed_at

    def tail(self) -> str:
        """See `Source`."""
        return "".join(self._lines)[-BYTES_MAX:]


_sources: deque[Source] = deque(maxlen=SOURCES_MAX)
_numbers = count()
_folder: "tempfile.TemporaryDirectory[str] | None" = None


def new_log(name: str) -> IO[bytes]:
    """Open a new file for the output of a child; close it once the child has been started.

    Its ``name`` is its path.

    Args:
        name: The title of its section in a report, such as ``node 2``.
    """
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="child-logs-")
    path = Path(_folder.name) / f"{next(_numbers)}.log"
    watch(name, path)
    return path.open("ab")


def watch(name: str, path: Path) -> None:
    """Show the end of a file if a test fails that started its writer, or during which it grew."""
    if file_at(path) is None:
        _sources.append(LogFile(name, path))


def file_at(path: Path) -> LogFile | None:
    """Return the file of `watch` or `new_log` with this path."""
    files = (one for one in _sources if isinstance(one, LogFile))
    return next((one for one in files if one.path == path), None)


def watch_lines(name: str) -> LineBuffer:
    """Return a buffer for the lines that the caller reads from a process's pipe.

    It is shown like a file of `watch`.
    """
    buffer = LineBuffer(name)
    _sources.append(buffer)
    return buffer


def sections_since(begun: float) -> Iterator[tuple[str, str]]:
    """Yield title and tail of each log that grew or was registered since ``begun`` (Unix time)."""
    for source in list(_sources):
        if source.changed_at() >= begun:
            yield f"Log of {source.name}", source.tail() or "(nothing was written)"


def tail_of(path: Path) -> str:
    """Return the end of a file, of at most `LINES_MAX` lines and `BYTES_MAX` bytes."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - BYTES_MAX, 0))
        text = file.read(BYTES_MAX).decode(errors="replace")
    return "".join(text.splitlines(keepends=True)[-LINES_MAX:])
