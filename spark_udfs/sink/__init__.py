"""A sink with exactly-once effects in a database; `sink.py` documents how it works."""

from spark_udfs.sink.brokers import KafkaBrokers
from spark_udfs.sink.message_ids import message_header
from spark_udfs.sink.sink import IdempotentSink
from spark_udfs.sink.statistics import Statistics

__all__ = ["IdempotentSink", "KafkaBrokers", "Statistics", "message_header"]
