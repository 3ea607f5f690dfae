"""The broker's access to `logging`, whose handlers belong to the user's program and may raise.

Theory of operation. A handler may raise anything: `pytest.fail` and ``exit()`` do not raise an
`Exception`. On the broker's own threads the exception is dropped and the line is lost, because no
caller could catch it. On a user's thread (`Broker()`, `Broker.close`) `KeyboardInterrupt` and
similar exceptions belong to the caller and are raised.
"""

import logging
import sys
import traceback
from contextlib import suppress

from pykafka_core.broker import native

SURVIVED = (Exception, SystemExit)
"""Exceptions that do not end the thread. An ``exit()`` in a callback is treated like any other
fault."""

_thread = native.local()


def never_raise_here() -> None:
    """From now on no log line of this thread raises an exception; for the broker's own threads."""
    _thread.is_own = True


class GuardedLogger:
    """A logger that only raises exceptions that belong to the caller; when a handler fails, the
    line is lost.

    The first lost line is reported on stderr, as `logging` itself reports a failing handler.

    Args:
        name: Name of the logger.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self.lost_count = 0

    def log(
        self, level: int, text: str, *arguments: object, error: BaseException | None = None
    ) -> None:
        """Log a line, with the traceback of ``error``."""
        try:
            self._logger.log(level, text, *arguments, exc_info=error, stacklevel=2)
        except BaseException as fault:
            self._note_lost(fault)

    def info(self, text: str, *arguments: object) -> None:
        """Log a line of level INFO."""
        self.log(logging.INFO, text, *arguments)

    def warning(self, text: str, *arguments: object) -> None:
        """Log a line of level WARNING."""
        self.log(logging.WARNING, text, *arguments)

    def error(self, text: str, *arguments: object, error: BaseException | None = None) -> None:
        """Log a line of level ERROR, with the traceback of ``error``."""
        self.log(logging.ERROR, text, *arguments, error=error)

    def pass_on(self, level: int, time_ms: int, text: str) -> None:
        """Log a line that was written earlier, at ``time_ms``.

        The text is not a format string: it may contain ``%``.
        """
        try:
            if self._logger.isEnabledFor(level):
                record = self._logger.makeRecord(
                    self._logger.name, level, "", 0, "%s", (text,), None
                )
                record.created = time_ms / 1000
                record.msecs = time_ms % 1000
                self._logger.handle(record)
        except BaseException as fault:
            self._note_lost(fault)

    def _note_lost(self, fault: BaseException) -> None:
        if not (isinstance(fault, SURVIVED) or getattr(_thread, "is_own", False)):
            raise fault
        self.lost_count += 1
        if self.lost_count > 1 or not logging.raiseExceptions or sys.stderr is None:
            return
        # stderr may be closed or replaced by the user, and so may the exception's own methods: both
        # may raise.
        with suppress(BaseException):
            name = self._logger.name
            print(f"pykafka-core: a handler of logger {name} failed:", file=sys.stderr)
            traceback.print_exception(fault, file=sys.stderr)
