"""Disks of nodes that can be full and lose power: an ext4 for each, in a file in memory that is mounted by loop.

Theory of operation. A power cut loses what the kernel had not written. ext4 can be told to shut down
(``EXT4_IOC_SHUTDOWN`` without a flush of its journal): from then on nothing reaches the file that it is in, so
unmounting it drops the page cache, and the next mount replays the journal as after a power cut. A write that was not
synced is lost with its file's new length; what was synced is there. ``commit=300`` keeps the journal from being written
meanwhile by its own timer, so more is at stake than with the default. The files are in memory (`memory`), as a sync of
a file system in a file costs two of the disk below, and three nodes that share one disk are no cluster.

Only root may mount, and only in a mount namespace of its own (`in_own_namespace`): whatever ends the process, the
mounts end with it.
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
"""The file is sparse: what is not used takes nothing."""
FILLER = "filler"
_INSIDE = "FAULTS_OWN_MOUNTS"


def in_own_namespace() -> None:
    """Go on in a mount namespace of this process's own, from the beginning of the program.

    Raises:
        PermissionError: Nobody but root may mount.
    """
    if _INSIDE in os.environ:
        return
    if os.geteuid() != 0:
        raise PermissionError("faults of disks need root: only root mounts an ext4")
    os.environ[_INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.orig_argv[1:]])


def memory(path: Path) -> None:
    """Mount a tmpfs where the files of disks go; made here, and gone with the namespace."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "faults", path], check=True)


def unmount(path: Path) -> None:
    subprocess.run(["umount", path], check=True)


class Disk:
    """One node's disk, mounted until `remove`.

    Args:
        image: The file that it is in; made here.
        path: Where it is mounted; made here.
        size: Bytes.
    """

    def __init__(self, image: Path, path: Path, size: int = SIZE) -> None:
        self._image, self.path = image, path
        with image.open("wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        path.mkdir()
        self._mount()
        (path / "lost+found").rmdir()  # Apache Kafka takes each directory for a partition's.

    def lose_power(self) -> None:
        """Lose what was not synced. No process may have a file of it open."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(directory)
        unmount(self.path)
        self._mount()

    def fill(self) -> None:
        """Take every byte that is left now; a node that frees some has them."""
        with (self.path / FILLER).open("ab", buffering=0) as file:
            for size in (1 << 24, 1 << 20, 4096, 1):
                with suppress(OSError):
                    while True:
                        at = file.seek(0, os.SEEK_END)
                        os.posix_fallocate(file.fileno(), at, size)

    def free(self) -> None:
        """Give back what `fill` took."""
        (self.path / FILLER).unlink(missing_ok=True)

    def remove(self) -> None:
        unmount(self.path)
        self._image.unlink()

    def _mount(self) -> None:
        options = ["-o", "loop,commit=300"]
        subprocess.run(["mount", "-t", "ext4", *options, self._image, self.path], check=True)
