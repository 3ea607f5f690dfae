"""A Spark session with the settings that Kafka pipelines in Python want.

Everything is checked and set on the builder, before a JVM starts; what the user set already stays.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_udfs.connector import (
    ARTIFACT,
    check_connector_version,
    connector_jars,
)
from spark_udfs.environment import (
    Spark,
    SparkSetupError,
    check_java,
    check_worker_python,
    installed_spark,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure_spark"]

# Python workers talk over Unix sockets: 29 ms a task in place of 55, and 3 to 5 % more rows (Spark 4.1 and later).
# `toPandas` and `createDataFrame` go through Arrow: their default is pickled rows.
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def configure_spark(builder: "SparkSession.Builder", kafka: bool = True) -> "SparkSession.Builder":
    """Set what is not set yet: Python workers, their sockets, Arrow, and the jars of Spark's Kafka connector.

        spark = configure_spark(SparkSession.builder.master("local[*]")).getOrCreate()

    Python workers run this Python (`PYSPARK_PYTHON`) unless the environment names one; on a cluster that
    must be a path that exists on its machines.

    Args:
        builder: Any builder of a session that has not started.
        kafka: Also bring the connector, as `connector_jars` finds it, unless `spark.jars` or
            `spark.jars.packages` name it already.

    Returns:
        The same builder.

    Raises:
        ConnectorMissing: `kafka`, and the jars cannot be had or do not fit the installed Spark.
        SparkSetupError: No Java, no PySpark, workers of another Python, a session that runs already with other
            settings or has left a JVM without the jars, or a Spark Connect builder, whose server has its own settings.
    """
    spark = installed_spark()
    given = _given(builder)
    if "spark.remote" in given or "SPARK_REMOTE" in os.environ:
        raise SparkSetupError(
            "a Spark Connect server has its own jars and Python workers: configure it where it starts"
        )
    wanted = {name: value for name, value in SETTINGS.items() if name not in given}
    if kafka:
        wanted |= _kafka_settings(spark, given)
    if not _session_runs(wanted):
        check_java()
        _choose_worker_python(given)
    for name, value in wanted.items():
        builder.config(name, value)
    return builder


def _given(builder: "SparkSession.Builder") -> dict[str, str]:
    """What the user set on the builder. PySpark has no public way to ask."""
    options: dict[str, object] = builder._options
    return {name: str(value) for name, value in options.items()}


def _kafka_settings(spark: Spark, given: dict[str, str]) -> dict[str, str]:
    """The settings that bring the connector; none if the user brings it."""
    submitted = os.environ.get("PYSPARK_SUBMIT_ARGS", "").replace(",", " ").split()
    named = [
        part.strip()
        for name in ("spark.jars", "spark.jars.packages")
        for part in given.get(name, "").split(",")
    ] + submitted
    connectors = [part for part in named if ARTIFACT in part]
    for connector in connectors:
        check_connector_version(connector.rpartition("/")[2], spark)
    if connectors:
        return {}
    found = connector_jars(given.get("spark.jars.ivySettings"))
    jars = [str(jar) for jar in found if jar.parent != spark.jars]
    if not jars:
        return {}
    return {"spark.jars": ",".join([*filter(None, [given.get("spark.jars")]), *jars])}


def _session_runs(wanted: dict[str, str]) -> bool:
    """Whether a Spark context runs in this process, with what is wanted: most of it cannot be changed then."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        _check_jvm(SparkContext._jvm, wanted)
        return False
    running = dict(context.getConf().getAll())
    other = [name for name, value in wanted.items() if not _has(running.get(name), value)]
    if other:
        raise SparkSetupError(
            f"a Spark session runs already without {', '.join(sorted(other))}: stop it first (spark.stop())"
        )
    return True


def _check_jvm(jvm: Any, wanted: dict[str, str]) -> None:
    """A stopped session leaves its JVM, and the next one runs in it with the jars it was started with."""
    jars = wanted.get("spark.jars")
    if jvm is None or jars is None:
        return
    if not _has(jvm.java.lang.System.getProperty("spark.jars"), jars):
        raise SparkSetupError(
            "an earlier session of this process left a JVM without the connector's jars: restart Python, and "
            "configure_spark the first session"
        )


def _has(running: str | None, value: str) -> bool:
    return running is not None and {Path(part).name for part in value.split(",")} <= {
        Path(part).name for part in running.split(",")
    }


def _choose_worker_python(given: dict[str, str]) -> None:
    """Workers run `python3` of the PATH if nothing is said, which need not be this one."""
    python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = given.get("spark.master", os.environ.get("MASTER", "local"))
    if master.startswith("local"):
        check_worker_python(python)
