"""The disk of a broker, made slow while the broker runs by a preloaded library."""

import mmap
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_disk.c")
SIZE = 256
"""Size of ``struct disk``: four numbers of 4 bytes, then the part of a path."""


class Disk:
    """What a preloaded broker's writes and syncs wait for; as fast as the machine's disk at first.

    Args:
        folder: Has the library and the state that it shares with the broker; made if missing.
    """

    def __init__(self, folder: Path) -> None:
        library, state = folder / "slow_disk.so", folder / "state"
        if not folder.exists():
            folder.mkdir(parents=True)
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
    def slow(self, ms: int, path_part: str = "") -> Iterator[None]:
        """Each write and sync of such files takes ``ms`` longer, at most until the block ends."""
        self._name(path_part)
        struct.pack_into("i", self._state, 0, ms)
        try:
            yield
        finally:
            struct.pack_into("i", self._state, 0, 0)

    def stall(self, path_part: str, ms: int) -> None:
        """Have the next write to a file with such a path take ``ms`` longer, once."""
        self._name(path_part)
        struct.pack_into("i", self._state, 4, ms)

    def fail(self, path_part: str) -> None:
        """Make each write and sync of files with such a path fail with EIO from now on."""
        self._name(path_part)
        struct.pack_into("i", self._state, 8, 1)

    def heal(self) -> None:
        """End `fail`."""
        struct.pack_into("i", self._state, 8, 0)

    def stalled(self) -> bool:
        """Whether a write has met the last `stall`."""
        (pending,) = struct.unpack_from("i", self._state, 4)
        return not pending

    def is_waited_for(self) -> bool:
        """Whether a write or sync takes the time of `slow`."""
        return bool(struct.unpack_from("i", self._state, 12)[0])

    def _name(self, path_part: str) -> None:
        struct.pack_into("240s", self._state, 16, path_part.encode())
