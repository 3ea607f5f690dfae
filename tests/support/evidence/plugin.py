"""A pytest plugin that attaches logs, messages and stacks to the report of a failed test.

* `logs`: the last lines of each child process that the test started, or that wrote during the test.
  (Brokers in this process log to `logging`, which pytest captures itself.)
* `ends`: the ends of children that are still in use, such as a broker that died before the test.
* `exchanges`: the last requests and responses of raw connections, and the last steps of simulated
  brokers.
* `stacks`: the stacks of all threads of this process and its children, when the test's timeout
  fires, or a wait of `eventually` or `subprocess` times out.
* The output of a child that `subprocess` raised an error about: the error itself does not show it.

Where the main thread does not return to Python, no timeout can raise there: a watchdog thread,
which needs no GIL, then writes the stacks to stderr and ends the process.
"""

import faulthandler
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Protocol

import pytest

from tests.support.evidence import ends, exchanges, logs, stacks
from tests.support.evidence.simulated import note_simulated
from tests.support.patience import ATTEMPT_S, PATIENCE_S

GRACE_S = 5 * PATIENCE_S
"""Seconds between the timeout of a test and the end of a process that could not raise it."""

_begun_at = time.time()
_stderr_descriptor = -1
"""The terminal's stderr: pytest replaces descriptor 2 while a test runs."""


class TimeoutSettings(Protocol):
    """The settings of pytest-timeout for one test."""

    timeout: float


def pytest_configure() -> None:
    """Prepare this process and its future Python children to print their stacks."""
    global _stderr_descriptor
    _stderr_descriptor = os.dup(2)
    os.environ["PYTHONFAULTHANDLER"] = "1"
    note_simulated()
    ends.note_children()
    stacks.take_on_timeouts(PATIENCE_S, from_s=ATTEMPT_S)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Start a test without the evidence of the previous one."""
    global _begun_at
    _begun_at = time.time()
    exchanges.clear()
    stacks.clear()
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(settings: TimeoutSettings) -> Generator[None, object, object]:
    """Take the stacks before pytest-timeout unwinds the test and ends its children."""
    result = yield
    raise_timeout = signal.getsignal(signal.SIGALRM)
    if callable(raise_timeout):

        def take_first(number: int, frame: FrameType | None) -> None:
            try:
                stacks.take(PATIENCE_S)
            finally:
                raise_timeout(number, frame)

        signal.signal(signal.SIGALRM, take_first)
    if sys.gettrace() is None:  # A debugger has no time limit.
        bound_s = settings.timeout + GRACE_S
        faulthandler.dump_traceback_later(bound_s, exit=True, file=_stderr_descriptor)
    return result


def pytest_enter_pdb() -> None:
    """Stop the watchdog: a debugging session has no time limit."""
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the sections to the report of a failed setup, call or teardown."""
    report = yield
    if report.failed:
        error = None if call.excinfo is None else call.excinfo.value
        report.sections.extend(_sections(error))
    return report


def _sections(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """Yield all evidence; a part that cannot be read is replaced by its error."""
    parts = (
        lambda: _outputs(error),
        lambda: logs.sections_since(_begun_at),
        lambda: ends.sections(_begun_at),
        exchanges.sections,
        stacks.sections,
    )
    for part in parts:
        try:
            yield from part()
        except Exception:  # The failure itself must be reported in any case.
            yield "Evidence is incomplete", traceback.format_exc()


def _outputs(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """Yield the output of children that ``error`` or one of its causes is about."""
    while error is not None:
        if isinstance(error, subprocess.CalledProcessError | subprocess.TimeoutExpired):
            for name, output in (("stdout", error.stdout), ("stderr", error.stderr)):
                if output:
                    yield f"Captured {name} of the child", _text(output)[-logs.BYTES_MAX :]
        error = error.__cause__ or error.__context__


def _text(output: str | bytes) -> str:
    return output if isinstance(output, str) else output.decode(errors="replace")
