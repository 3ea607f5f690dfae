"""The processes that lock a file or listen at a port.

They come from Linux's /proc; without it there are none.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_LISTENS = "0A"


class Listening(NamedTuple):
    """A socket that listens."""

    host: str
    inode: str

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach it."""
        return ip_address(self.host).is_loopback


class Holder(NamedTuple):
    """The holder of a lock; its process id is None if /proc does not show it."""

    process: int | None

    def __str__(self) -> str:
        if self.process is None:
            return "a process of another user or container"
        return f"process {self.process}"


def lock_holder(directory: Path) -> Holder | None:
    """Return the process that has locked a data directory, or one of several; None without a lock.

    A POSIX lock, as Apache Kafka takes it, has the process id. A lock of an open file description,
    as this package takes it, has -1 instead, and is found among the open files of each process.
    """
    with suppress(OSError, ValueError):
        lock = _lock(directory)
        if lock is None:
            return None
        process = lock.process if lock.process > 0 else _description_holder(lock.file)
        if process is not None or _lock(directory) is not None:  # not released since
            return Holder(process)
    return None


class _Lock(NamedTuple):
    """A line of ``/proc/locks``."""

    process: int
    file: str


def _lock(directory: Path) -> _Lock | None:
    wanted = (directory / ".lock").stat()
    for line in (_PROC / "locks").read_text().splitlines():
        fields = line.split()
        # "1: POSIX ADVISORY WRITE 4711 08:01:1234 0 EOF"; a waiting process has "->" after the
        # number.
        if len(fields) == 8 and fields[1] in {"POSIX", "OFDLCK"}:
            major, minor, inode = fields[5].split(":")
            device = os.makedev(int(major, 16), int(minor, 16))
            if int(inode) == wanted.st_ino and device == wanted.st_dev:
                return _Lock(int(fields[4]), fields[5])
    return None


def _description_holder(file: str) -> int | None:
    """Return a process with a descriptor that locks a file, given as in ``/proc/locks``."""
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            for descriptor in (process / "fdinfo").iterdir():
                with suppress(FileNotFoundError):
                    text = descriptor.read_text()
                    if "OFDLCK" in text and file in text.split():
                        return int(process.name)
    return None


def listening(port: int) -> list[Listening]:
    """Return the sockets that listen at a TCP port of this machine."""
    return [*_listening("tcp", port), *_listening("tcp6", port)]


def _listening(table: str, port: int) -> Iterator[Listening]:
    try:
        lines = (_PROC / "net" / table).read_text().splitlines()[1:]
    except OSError:
        return
    for fields in map(str.split, lines):
        host, _, number = fields[1].partition(":")
        if fields[3] == _LISTENS and int(number, 16) == port:
            yield Listening(_host(host), fields[9])


def _host(text: str) -> str:
    """Return the address; each of its 32-bit words is in the machine's byte order."""
    words = bytes.fromhex(text)
    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    address = ip_address(packed)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def socket_holder(inode: str) -> int | None:
    """Return a process that has a socket open; processes of other users are not visible."""
    wanted = f"socket:[{inode}]"
    for process in _PROC.glob("[0-9]*"):
        if wanted in _open_files(process):
            return int(process.name)
    return None


def _open_files(process: Path) -> Iterator[str]:
    with suppress(OSError):
        for one in (process / "fd").iterdir():
            # A file may be closed after the listing; this process also has the listed directory
            # open.
            with suppress(FileNotFoundError):
                yield os.readlink(one)


def command_of(process: int) -> str:
    """Return the command of a process, shortened."""
    with suppress(OSError):
        words = (_PROC / str(process) / "cmdline").read_bytes().split(b"\0")
        text = b" ".join(words).decode(errors="replace").strip()
        return text if len(text) <= 80 else f"{text[:77]}..."
    return "unknown"
