"""Rust's log lines in Python's `logging`: pulled by the control thread, never called back."""

import logging
from collections.abc import Callable

from pykafka_core.broker.seam.core import Core

DRAIN_INTERVAL_MS = 1000


def drain_into_logging(core: Core) -> Callable[[], None]:
    """An action that passes on the lines since the last time.

    Targets become loggers below ``pykafka_core``: ``pykafka_log::recovery`` →
    ``pykafka_core.pykafka_log.recovery``. The text is an argument, not a format: it may hold ``%``.
    """

    def drain() -> None:
        for time_ms, level, target, text in core.drain_log():
            logger = logging.getLogger("pykafka_core." + target.replace("::", "."))
            if logger.isEnabledFor(level):
                record = logger.makeRecord(logger.name, level, "", 0, "%s", (text,), None)
                record.created = time_ms / 1000
                record.msecs = time_ms % 1000
                logger.handle(record)

    return drain
