"""A page cache that is full, as that of a server is after some days.

A virtual machine gives memory that is free back to its host (free page reporting), and the first write to it waits for
the host: 0.4 GB/s where memory that the machine still has takes 4. What is measured while memory is free is the host.
"""

import os
from pathlib import Path

from bench.peers.brokers import PAGE

MB = 1 << 20
MEMORY_BYTES = os.sysconf("SC_PHYS_PAGES") * PAGE


def fill(folder: Path) -> None:
    """Read a file that is as large as the memory; the first call in a folder makes it.

    New pages of the page cache are then those of this file, as long as nothing is deleted.
    """
    filler = folder / "filler"
    if not filler.exists():
        with filler.open("wb", buffering=0) as file:
            for _ in range(MEMORY_BYTES // MB):
                file.write(bytes(MB))
    read(filler)


def keep(path: Path) -> None:
    """Have all of a file in the page cache, and not as what goes first: a page that was read twice is active."""
    for _ in range(2):
        read(path)


def read(path: Path) -> None:
    """Have all of a file in the page cache, until something else is read."""
    buffer = bytearray(MB)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
