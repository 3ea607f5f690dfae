"""Fills the page cache, to get the state of a server after some days.

A virtual machine returns free memory to its host (free page reporting), and the first write to it
waits for the host: 0.4 GB/s, compared with 4 GB/s for memory that the machine still has. So a
measurement with free memory would measure the host.
"""

import os
from pathlib import Path

from bench.peers.brokers import PAGE

MB = 1 << 20
MEMORY_BYTES = os.sysconf("SC_PHYS_PAGES") * PAGE


def fill(folder: Path) -> None:
    """Read a file as large as the memory; the first call in a folder creates it.

    New pages of the page cache then replace those of this file, as long as no file is deleted.
    """
    filler = folder / "filler"
    if not filler.exists():
        with filler.open("wb", buffering=0) as file:
            for _ in range(MEMORY_BYTES // MB):
                file.write(bytes(MB))
    read(filler)


def keep(path: Path) -> None:
    """Keep a file in the page cache as active pages, by reading it twice."""
    for _ in range(2):
        read(path)


def read(path: Path) -> None:
    """Load a file into the page cache, where later reads may evict it."""
    buffer = bytearray(MB)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
