"""A /proc of a process that cannot be seen."""

import os
from pathlib import Path


def proc_with_lock(folder: Path, directory: Path, *, is_listed: bool) -> Path:
    """Create a /proc that contains the lock of a data directory, but not its holder.

    Args:
        folder: The /proc is created in it.
        directory: It contains a ``.lock``.
        is_listed: Whether the holder has an entry whose open files cannot be read, as a process of
            another user, or none, as a process of another container.
    """
    proc = folder / "proc"
    proc.mkdir()
    lock = (directory / ".lock").stat()
    file = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    (proc / "locks").write_text(f"1: OFDLCK ADVISORY  WRITE -1 {file} 0 EOF\n")
    if is_listed:
        (proc / "4711").mkdir()
        # A mode does not keep root out; a loop of links does.
        (proc / "4711" / "fdinfo").symlink_to("fdinfo")
    return proc
