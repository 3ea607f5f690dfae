"""The process of an object, and descriptors that a forked child closes; the core closes its own."""

import os
from typing import Protocol
from weakref import WeakSet


class _Closable(Protocol):
    def close(self) -> object:
        """Close the descriptors."""


class OwnProcess:
    """The process that made this value; its forked children are others."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_current(self) -> bool:
        """False in a forked child, which has no threads of its parent."""
        return self._pid == os.getpid()


_open = WeakSet[_Closable]()


def close_in_children(opened: _Closable) -> None:
    """Close this in forked children, so that no copy keeps a port bound or a pipe open."""
    _open.add(opened)


def _close_all() -> None:
    for opened in list(_open):
        opened.close()
    _open.clear()


os.register_at_fork(after_in_child=_close_all)
