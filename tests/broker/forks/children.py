"""Forked children, whose lifetimes a test controls."""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

FAILED = 70


def exit_code(work: Callable[[], object]) -> int:
    """Do `work` in a forked child; return its exit code, which is 0 unless `work` raised."""
    child = os.fork()
    if child == 0:
        _run(work)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def living_child() -> Iterator[int]:
    """Fork a child that does nothing until the block ends; yield its process id."""
    begun, begins = os.pipe()
    ends, end = os.pipe()

    def live() -> None:
        os.close(end)
        os.write(begins, b"!")
        os.read(ends, 1)

    child = os.fork()
    if child == 0:
        _run(live)
    assert os.read(begun, 1) == b"!"
    try:
        yield child
    finally:
        for number in (end, ends, begins, begun):
            os.close(number)
        os.waitpid(child, 0)


@contextmanager
def killed_later(process: int) -> Iterator[None]:
    """Kill a process, even one with another parent, at the end of the block."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _run(work: Callable[[], object]) -> None:
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(FAILED)
