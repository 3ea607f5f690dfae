"""The disk of a broker, made slow while the broker runs by a preloaded library."""

import mmap
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_disk.c")
SIZE = 256
"""Of ``struct disk``: every_ms and stall_ms, 4 bytes each, then the part of a path."""


class Disk:
    """What a preloaded broker's writes and syncs wait for; as fast as the machine's disk at first.

    Args:
        folder: Where the library is compiled to and shares its state with the broker.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        library, state = folder / "slow_disk.so", folder / "state"
        compiler = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(compiler, check=True)
        state.write_bytes(bytes(SIZE))
        with state.open("r+b") as file:
            self._state = mmap.mmap(file.fileno(), SIZE)
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "SLOW_DISK": str(state),
        }

    @contextmanager
    def slow(self, ms: int) -> Iterator[None]:
        """Each write and sync takes ``ms`` longer within the block."""
        struct.pack_into("i", self._state, 0, ms)
        try:
            yield
        finally:
            struct.pack_into("i", self._state, 0, 0)

    def stall(self, path_part: str, ms: int) -> None:
        """Have the next write to a file with such a path take ``ms`` longer, once."""
        struct.pack_into("248s", self._state, 8, path_part.encode())
        struct.pack_into("i", self._state, 4, ms)

    def stalled(self) -> bool:
        """Whether a write has met the last `stall`."""
        (pending,) = struct.unpack_from("i", self._state, 4)
        return not pending
