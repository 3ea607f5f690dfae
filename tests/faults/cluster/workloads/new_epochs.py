"""Detection of librdkafka producers that take a new epoch and so may write duplicates."""

import logging
import re
from collections.abc import Callable, Mapping

_OUT_OF_ORDER = re.compile(r"ERRSEQ .*?\[thrd:[^]]*/(\d+)\]")
"""Matches a line of librdkafka's log; the thread's name ends with the node's id."""


class OutOfOrder(logging.Handler):
    """Calls ``told`` with each node that wrongly responded OUT_OF_ORDER_SEQUENCE_NUMBER.

    The response was for a batch after one that the node had refused. The producer then continues
    with a new epoch and sends all batches with unknown outcome again, which a leader cannot
    distinguish from new records. Our leaders remember refused batches and never respond so
    (docs/design/0025); Apache Kafka's do.
    """

    def __init__(self, told: Callable[[int], None]) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        if found := _OUT_OF_ORDER.match(record.getMessage()):
            self._told(int(found[1]))


def watched(told: Callable[[int], None]) -> Mapping[str, object]:
    """Return producer settings that install an `OutOfOrder`; its callback runs within ``poll``."""
    logger = logging.Logger("librdkafka", logging.DEBUG)
    logger.addHandler(OutOfOrder(told))
    return {"debug": "eos", "logger": logger}
