"""Disks of nodes that can be full and lose power: one ext4 per node, loop-mounted from memory.

Theory of operation. A power cut loses the data that the kernel had not written. ext4 can be shut
down by an ioctl (``EXT4_IOC_SHUTDOWN`` without a flush of its journal): from then on nothing
reaches the image file, so unmounting drops the page cache, and the next mount replays the journal
as after a power cut. A write that was not synced is lost together with its file's new length;
synced data stay. ``commit=300`` prevents the journal's own timer from writing it earlier, so more
data are at risk than with the default. The image files are in memory (`memory`), because a sync of
a file system in a file costs two syncs of the disk below, and three nodes on one disk would not be
independent.

Only root may mount, and only in a separate mount namespace (`in_own_namespace`): however the
process ends, the mounts end with it.
"""

import fcntl
import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2
"""``EXT4_IOC_SHUTDOWN`` of Linux's ext4.h, and its flag ``EXT4_GOING_FLAGS_NOLOGFLUSH``."""
SIZE = 512 << 20
"""The image file is sparse: unused space takes nothing."""
FILLER = "filler"
_INSIDE = "FAULTS_OWN_MOUNTS"


def in_own_namespace() -> None:
    """Restart the program in its own mount namespace.

    Raises:
        PermissionError: Only root may mount.
    """
    if _INSIDE in os.environ:
        return
    if os.geteuid() != 0:
        raise PermissionError("faults of disks need root: only root mounts an ext4")
    os.environ[_INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.orig_argv[1:]])


def memory(path: Path) -> None:
    """Mount a tmpfs for the image files at a new folder; it ends with the namespace."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "faults", path], check=True)


def unmount(path: Path) -> None:
    subprocess.run(["umount", path], check=True)


class Disk:
    """One node's disk, mounted until `remove`.

    Args:
        image: The image file, created here.
        path: The mount point, created here.
        size: Bytes.
    """

    def __init__(self, image: Path, path: Path, size: int = SIZE) -> None:
        self._image, self.path = image, path
        with image.open("wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        path.mkdir()
        self._mount()
        (path / "lost+found").rmdir()  # Apache Kafka treats each directory as a partition's.

    def lose_power(self) -> None:
        """Lose the data that were not synced. No process may have one of its files open."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(directory)
        unmount(self.path)
        self._mount()

    def fill(self) -> None:
        """Take all space that is free now; space that a node frees later stays free."""
        with (self.path / FILLER).open("ab", buffering=0) as file:
            for size in (1 << 24, 1 << 20, 4096, 1):
                with suppress(OSError):
                    while True:
                        at = file.seek(0, os.SEEK_END)
                        os.posix_fallocate(file.fileno(), at, size)

    def free(self) -> None:
        """Free the space that `fill` took."""
        (self.path / FILLER).unlink(missing_ok=True)

    def remove(self) -> None:
        unmount(self.path)
        self._image.unlink()

    def _mount(self) -> None:
        options = ["-o", "loop,commit=300"]
        subprocess.run(["mount", "-t", "ext4", *options, self._image, self.path], check=True)
