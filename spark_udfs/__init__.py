"""Vectorised UDFs and pipeline parts for Spark on Kafka data.

They need ``pip install 'pykafka_core[spark]'``. Attributes are imported on first use; the first one
also imports PySpark.
"""

from importlib.util import find_spec

TYPE_CHECKING = False

if TYPE_CHECKING:
    from spark_udfs.connector import ConnectorMissing as ConnectorMissing
    from spark_udfs.connector import connector_jars as connector_jars
    from spark_udfs.dedup import dedup_batch as dedup_batch
    from spark_udfs.dedup import dedup_offsets as dedup_offsets
    from spark_udfs.dedup import dedup_stream as dedup_stream
    from spark_udfs.dedup import fingerprint as fingerprint
    from spark_udfs.environment import SparkSetupError as SparkSetupError
    from spark_udfs.partitioning import kafka_partition as kafka_partition
    from spark_udfs.partitioning import kafka_partition_arrow as kafka_partition_arrow
    from spark_udfs.partitioning import kafka_partition_pandas as kafka_partition_pandas
    from spark_udfs.partitioning import repartition_by_kafka_key as repartition_by_kafka_key
    from spark_udfs.partitioning import with_kafka_partition as with_kafka_partition
    from spark_udfs.session import configure_spark as configure_spark
    from spark_udfs.sink import IdempotentSink as IdempotentSink
    from spark_udfs.sink import KafkaBrokers as KafkaBrokers
    from spark_udfs.sink import message_header as message_header

if missing := [name for name in ("pyspark", "pandas", "pyarrow") if find_spec(name) is None]:
    raise ImportError(
        f"spark_udfs needs {' and '.join(missing)}: pip install 'pykafka_core[spark]'",
        name=missing[0],
    )

# The module of each name. `__all__` lists the same names, sorted.
_HOMES = {
    "ConnectorMissing": "connector",
    "IdempotentSink": "sink",
    "KafkaBrokers": "sink",
    "SparkSetupError": "environment",
    "configure_spark": "session",
    "connector_jars": "connector",
    "dedup_batch": "dedup",
    "dedup_offsets": "dedup",
    "dedup_stream": "dedup",
    "fingerprint": "dedup",
    "kafka_partition": "partitioning",
    "kafka_partition_arrow": "partitioning",
    "kafka_partition_pandas": "partitioning",
    "message_header": "sink",
    "repartition_by_kafka_key": "partitioning",
    "with_kafka_partition": "partitioning",
}
__all__ = [
    "ConnectorMissing",
    "IdempotentSink",
    "KafkaBrokers",
    "SparkSetupError",
    "configure_spark",
    "connector_jars",
    "dedup_batch",
    "dedup_offsets",
    "dedup_stream",
    "fingerprint",
    "kafka_partition",
    "kafka_partition_arrow",
    "kafka_partition_pandas",
    "message_header",
    "repartition_by_kafka_key",
    "with_kafka_partition",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"spark_udfs.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
