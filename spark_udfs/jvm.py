"""The settings of a running JVM, and whether it has Spark's Kafka connector.

spark-submit, the `pyspark` shell, a notebook with its own session (Databricks) or an earlier
session of this process started it. A driver loads jars only when its JVM starts.
"""

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from spark_udfs.connector import (
    CONNECTOR_NAME,
    ConnectorMissing,
    check_connector_version,
    connector_advice,
)
from spark_udfs.environment import Spark, pyspark_version

__all__ = ["connector_of", "running_jvm", "settings_of"]

_PROVIDER: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the Python that it runs."""


def running_jvm() -> Any:
    """Return the JVM of this process, or None before it starts."""
    from pyspark import SparkContext

    if SparkContext._jvm is None and _SUBMITTED in os.environ:
        SparkContext._ensure_initialized()  # connects to the JVM that started this Python
    return SparkContext._jvm


def settings_of(jvm: Any) -> dict[str, str]:
    """Return the settings of the context and its session, else those that the JVM started with."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    settings = dict((context.getConf() if context else SparkConf(_jvm=jvm)).getAll())
    session = SparkSession._instantiatedSession
    return settings | session.conf.getAll if context and session else settings


def connector_of(jvm: Any) -> None:
    """Check that the JVM can load Spark's Kafka connector from any source.

    Raises:
        ConnectorMissing: It cannot, or the connector is for another Spark version.
    """
    from py4j.protocol import Py4JJavaError

    scala = ".".join(jvm.scala.util.Properties.versionNumberString().split(".")[:2])
    spark = Spark(home=Path(), version=pyspark_version(), scala=scala)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        provider = jvm.java.lang.Class.forName(_PROVIDER, False, loader)
    except Py4JJavaError:
        raise ConnectorMissing(_missing(spark)) from None
    source = provider.getProtectionDomain().getCodeSource()
    jar = unquote(source.getLocation().getPath()).rpartition("/")[2] if source else ""
    if CONNECTOR_NAME.search(jar):  # a vendor's jar may have any name
        check_connector_version(jar, spark)


def _missing(spark: Spark) -> str:
    from pyspark import SparkContext

    if _SUBMITTED in os.environ:
        said = "spark-submit started this driver without Spark's Kafka connector: add it by --packages or --jars"
    elif SparkContext._active_spark_context is not None:
        said = (
            "the session that runs already has no Kafka connector: restart Python and configure_spark the first "
            "session; where the platform starts the session (Databricks and other notebooks), add it to the cluster"
        )
    else:
        said = (
            "an earlier session of this process left a JVM without Spark's Kafka connector: restart Python, and "
            "configure_spark the first session with kafka=True"
        )
    return f"{said}; {connector_advice(spark)}"
