"""When an idempotent producer of librdkafka takes a new epoch, and with it gives up that nothing is there twice."""

import logging
import re
from collections.abc import Callable, Mapping

_OUT_OF_ORDER = re.compile(r"ERRSEQ .*?\[thrd:[^]]*/(\d+)\]")
"""Of librdkafka's log: the node's id is the end of the thread's name."""


class OutOfOrder(logging.Handler):
    """Calls ``told`` with a node that said OUT_OF_ORDER_SEQUENCE_NUMBER of a batch behind one that it had refused.

    The producer goes on with a new epoch then, and whatever is in doubt is sent again under it: no leader can tell
    that from new records. Leaders of ours keep a note of what they refused, so that none of them says it of such a
    batch (docs/design/0025); Apache Kafka's do.
    """

    def __init__(self, told: Callable[[int], None]) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        if found := _OUT_OF_ORDER.match(record.getMessage()):
            self._told(int(found[1]))


def watched(told: Callable[[int], None]) -> Mapping[str, object]:
    """Settings of a producer that has an `OutOfOrder`; it is called within the producer's ``poll``."""
    logger = logging.Logger("librdkafka", logging.DEBUG)
    logger.addHandler(OutOfOrder(told))
    return {"debug": "eos", "logger": logger}
