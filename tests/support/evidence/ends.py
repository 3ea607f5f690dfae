"""The ends of child processes whose objects are still in use.

The broker of a module's fixture may die before a test starts. Its log has not changed since then,
so `logs` does not show it, and the test only gets a refused connection.
"""

import functools
import os
import signal
import subprocess
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.evidence import logs

CHILDREN_MAX = 20
LINES_MAX = 20
COMMAND_MAX = 120
"""Characters of a command line in the title of a section."""

Child = subprocess.Popen[Any]

_outputs: "weakref.WeakKeyDictionary[Child, Path | None]" = weakref.WeakKeyDictionary()
"""Child → the file of its stderr or stdout; the newest last."""


def note_children() -> None:
    """From now on, remember each child for as long as its object is in use."""
    method: Callable[..., None] = subprocess.Popen.__init__

    @functools.wraps(method)
    def noting(child: Child, *given: object, **named: object) -> None:
        method(child, *given, **named)
        _outputs[child] = _path(named.get("stderr")) or _path(named.get("stdout"))

    setattr(subprocess.Popen, "__init__", noting)  # noqa: B010


def _path(file: object) -> Path | None:
    name = getattr(file, "name", None)  # of a pipe: its descriptor
    return Path(name) if isinstance(name, str) else None


def sections(since: float) -> Iterator[tuple[str, str]]:
    """Yield a title and a text for each child that has ended.

    A child that ended with status 0 and has no log is omitted.

    Args:
        since: The start of the test (Unix time). The end of an older log is part of the text.
    """
    for child, path in list(_outputs.items())[-CHILDREN_MAX:]:
        status = status_of(child)
        log = None if path is None else logs.file_at(path)
        if status is not None and (log is not None or status):
            name = _command(child) if log is None else log.name
            yield f"End of {name}", "\n".join([described(status), *_last_lines(log, since)])


def status_of(child: Child) -> int | None:
    """Return the status of a child as in `Popen.returncode`; None while it runs.

    Its owner can still wait for it.
    """
    if child.returncode is not None:
        return child.returncode
    try:
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # A handler of SIGCHLD has waited for it.
        return None
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def described(status: int) -> str:
    """Return how a child ended."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _last_lines(log: logs.LogFile | None, since: float) -> list[str]:
    if log is None or (silent_s := since - log.changed_at()) <= 0:
        return []  # `logs` shows it
    lines = log.tail().splitlines()[-LINES_MAX:]
    return [f"It wrote last {silent_s:.1f} s before the test began:", *lines]


def _command(child: Child) -> str:
    given = child.args
    words = [given] if isinstance(given, str | bytes | os.PathLike) else list(given)
    return " ".join(map(str, words))[:COMMAND_MAX]
