"""The disk of a broker, which a preloaded library slows down while the broker runs."""

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
    """Delays the writes and syncs of a broker with the preloaded library; initially there is no
    delay.

    Args:
        folder: Has the library and the state that it shares with the broker; created if missing.
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
        """Make each write and sync of such files take ``ms`` longer until the block ends."""
        self._name(path_part)
        struct.pack_into("i", self._state, 0, ms)
        try:
            yield
        finally:
            struct.pack_into("i", self._state, 0, 0)

    def stall(self, path_part: str, ms: int) -> None:
        """Make only the next write to a file with such a path take ``ms`` longer."""
        self._name(path_part)
        struct.pack_into("i", self._state, 4, ms)

    def fail(self, path_part: str) -> None:
        """Make each write and sync of files with such a path fail with EIO from now on."""
        self._name(path_part)
        struct.pack_into("i", self._state, 8, 1)

    def heal(self) -> None:
        """End the effect of `fail`."""
        struct.pack_into("i", self._state, 8, 0)

    def stalled(self) -> bool:
        """Return whether the last `stall` has delayed a write."""
        (pending,) = struct.unpack_from("i", self._state, 4)
        return not pending

    def is_waited_for(self) -> bool:
        """Return whether a write or sync is being delayed by `slow`."""
        return bool(struct.unpack_from("i", self._state, 12)[0])

    def _name(self, path_part: str) -> None:
        struct.pack_into("240s", self._state, 16, path_part.encode())
