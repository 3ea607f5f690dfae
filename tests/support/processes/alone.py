"""Tasks that several pytest processes may start at once, but only one must do."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make other processes with the same ``folder`` wait until the block ends, or this process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
