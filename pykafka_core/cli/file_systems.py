"""Checks of the file system of a directory."""

import os
from pathlib import Path

READ_ONLY_ADVICE = "remount it for writing, or copy the directory to another file system"


def is_read_only(path: Path) -> bool:
    """Return whether the file system of a path is mounted read-only; the path may not exist."""
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    return bool(os.statvfs(there).f_flag & os.ST_RDONLY)


def lock_advice(directory: Path) -> str:
    """Return how to proceed with a directory that cannot be locked."""
    return READ_ONLY_ADVICE if is_read_only(directory) else "stop the broker first"
