"""The broker's way to `logging`, whose handlers belong to the user's program and may raise.

Theory of operation. A handler may raise anything: `pytest.fail` and ``exit()`` raise what is not an `Exception`. On one
of the broker's threads it costs the line, because no caller could catch it. On a thread of the user's (`Broker()`,
`Broker.close`) `KeyboardInterrupt` and the like are the caller's: they are raised.
"""

import logging
import sys
import traceback
from contextlib import suppress

from pykafka_core.broker import native

SURVIVED = (Exception, SystemExit)
"""What an item may raise without ending the thread. An ``exit()`` in a callback is a fault like others."""

_thread = native.local()


def never_raise_here() -> None:
    """From now on no line that this thread logs raises anything; for threads of the broker's own."""
    _thread.is_own = True


class GuardedLogger:
    """A logger whose lines raise nothing but what is the caller's: a handler's fault costs the line.

    The first line that is lost is reported on stderr, as `logging` itself reports a failing handler.

    Args:
        name: Of the logger.
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
        """Log a line that was written earlier, at ``time_ms``. The text is no format: it may hold ``%``."""
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
        # stderr may be closed, or the user's own; so may be what a fault says of itself.
        with suppress(BaseException):
            name = self._logger.name
            print(f"pykafka-core: a handler of logger {name} failed:", file=sys.stderr)
            traceback.print_exception(fault, file=sys.stderr)
