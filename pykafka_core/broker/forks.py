"""Descriptors of Python objects that a forked child closes; the core closes its own."""

import os
from typing import Protocol
from weakref import WeakSet


class _Closable(Protocol):
    def close(self) -> object:
        """Close the descriptors."""


_open = WeakSet[_Closable]()


def close_in_children(opened: _Closable) -> None:
    """Close this in forked children, so that no copy keeps a port bound or a pipe open."""
    _open.add(opened)


def _close_all() -> None:
    for opened in list(_open):
        opened.close()
    _open.clear()


os.register_at_fork(after_in_child=_close_all)
