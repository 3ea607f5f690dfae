"""The log of one partition as a library, without a broker.

>>> from pykafka_core.log import Log
>>> with Log.open("data/events-0") as log:  # doctest: +SKIP
...     log.append([(b"key", b"value")])
...     for record in log:
...         print(record.offset, record.value)
"""

from .config import LogConfig
from .log import Appended, Log, LogStatistics

__all__ = ["Appended", "Log", "LogConfig", "LogStatistics"]
