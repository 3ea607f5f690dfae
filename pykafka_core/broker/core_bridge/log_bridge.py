"""Passes Rust's log lines to Python's `logging`: pulled by the control thread, never called from
Rust.
"""

import logging
from collections.abc import Callable

from pykafka_core._core import Core
from pykafka_core.broker.rate_limited_logging import Notices
from pykafka_core.broker.safe_logging import GuardedLogger

DRAIN_INTERVAL_MS = 1000


def drain_into_logging(core: Core) -> Callable[[], None]:
    """Return an action that logs the lines since its last call; it never raises.

    A warning that equals one within the last minute is omitted, because a client that retries
    causes one at each attempt. Targets become loggers below ``pykafka_core``:
    ``pykafka_log::recovery`` → ``pykafka_core.pykafka_log.recovery``.
    """
    loggers: dict[str, GuardedLogger] = {}
    notices = Notices(core.now_ns)

    def drain() -> None:
        for time_ms, level, target, text in core.drain_log():
            repeated = notices.admit((target, text)) if level == logging.WARNING else 0
            if repeated is None:
                continue
            if repeated:
                text = f"{text} ({repeated} more since the last report)"
            logger = loggers.get(target)
            if logger is None:
                name = "pykafka_core." + target.replace("::", ".")
                logger = loggers[target] = GuardedLogger(name)
            logger.pass_on(level, time_ms, text)

    return drain
