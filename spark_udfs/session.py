"""A Spark session with the settings that Kafka pipelines in Python want.

Everything is checked and set on the builder, before a JVM starts; what the user set already stays, wherever it was
set: on the builder, in `PYSPARK_SUBMIT_ARGS`, in a file of settings, in the session that runs. Where a JVM runs already
(spark-submit, a notebook that brings its session, an earlier session of this process) it is asked what it has: no jar
can be added.
"""

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, Final

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
from spark_udfs.jvm import connector_of, running_jvm, settings_of
from spark_udfs.submitted import file_settings, submitted_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure_spark"]

# Python workers talk over Unix sockets: 29 ms a task in place of 55, and 3 to 5 % more rows (Spark 4.1 and later).
# `toPandas` and `createDataFrame` go through Arrow: their default is pickled rows.
SETTINGS: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_CONNECT: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


def configure_spark(builder: "SparkSession.Builder", kafka: bool = False) -> "SparkSession.Builder":
    """Set what is not set yet: Python workers, their sockets, Arrow, and the jars of Spark's Kafka connector.

        spark = configure_spark(SparkSession.builder.master("local[*]"), kafka=True).getOrCreate()

    Python workers run this Python (`PYSPARK_PYTHON`) unless the environment names one; on a cluster that
    must be a path that exists on its machines.

    Args:
        builder: Any builder of a session. One that runs already keeps the settings that cannot be changed.
        kafka: Also see that Spark's Kafka connector is there. It is brought as `connector_jars` finds it, unless
            `spark.jars` or `spark.jars.packages` name it already; a JVM that runs must have it.

    Returns:
        The same builder.

    Raises:
        ConnectorMissing: `kafka`, and the jars cannot be had or do not fit Spark.
        SparkSetupError: No Java, no PySpark, workers of another Python, a JVM that runs without the connector, or
            Spark Connect, whose server has its own settings; settings that Spark could not read.
        TypeError: No builder.
    """
    options = _options(builder)
    if any(name in os.environ for name in _CONNECT) or _is_connect(options):
        raise SparkSetupError(
            "this is Spark Connect (as are Databricks Connect and serverless notebooks), whose server has its own "
            "jars and Python workers: configure it where it starts, and leave configure_spark out here"
        )
    # PySpark 4.3 warns of pandas 3 at its first use. Ours is columns of bytes, which all our tests run with pandas 3.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    jvm = running_jvm()
    wanted = _wanted_of(jvm, options, kafka) if jvm else _wanted(options, kafka)
    for name, value in wanted.items():
        builder.config(name, value)
    return builder


def _options(builder: "SparkSession.Builder") -> dict[str, str]:
    """What the user set on the builder. PySpark has no public way to ask."""
    options: dict[str, object] | None = getattr(builder, "_options", None)
    if options is None or not hasattr(builder, "getOrCreate"):
        raise TypeError(
            "configure_spark takes the builder of a session, such as SparkSession.builder, not "
            f"{type(builder).__name__}"
        )
    return {name: str(value) for name, value in options.items()}


def _is_connect(options: dict[str, str]) -> bool:
    mode = options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "classic"))
    return "spark.remote" in options or mode.lower() == "connect"


def _wanted_of(jvm: Any, options: dict[str, str], kafka: bool) -> dict[str, str]:
    """For a JVM that runs. `getOrCreate` would set it in the session that runs, too."""
    from pyspark import SparkContext

    given = settings_of(jvm) | options
    if kafka:
        connector_of(jvm)
    if SparkContext._active_spark_context is None:
        _choose_worker_python(given)
    return {name: value for name, value in SETTINGS.items() if name not in given}


def _wanted(options: dict[str, str], kafka: bool) -> dict[str, str]:
    """For a JVM that `getOrCreate` will start."""
    spark = installed_spark()
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")  # as PySpark has it
    submitted = submitted_settings(arguments)
    given = file_settings(spark, arguments) | options | submitted
    wanted = {name: value for name, value in SETTINGS.items() if name not in given}
    if kafka:
        wanted |= _connector_settings(spark, given, submitted)
    check_java()
    _choose_worker_python(given)
    return wanted


def _connector_settings(
    spark: Spark, given: dict[str, str], submitted: dict[str, str]
) -> dict[str, str]:
    """The settings that bring the connector; none if the user brings it."""
    names = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    named = [part.strip() for name in names for part in _parts(given.get(name, ""))]
    connectors = [part for part in named if ARTIFACT in part]
    for connector in connectors:
        check_connector_version(connector.rpartition("/")[2], spark)
    if connectors:
        return {}
    found = connector_jars(given.get("spark.jars.ivySettings"))
    jars = [str(jar) for jar in found if jar.parent != spark.jars]
    if jars and "spark.jars" in submitted:
        raise SparkSetupError(
            "--jars in PYSPARK_SUBMIT_ARGS overrides what configure_spark would add: name the connector there, too, "
            f"by --jars {submitted['spark.jars']},{','.join(jars)}"
        )
    own = [given["spark.jars"]] if given.get("spark.jars") else []
    return {"spark.jars": ",".join(own + jars)} if jars else {}


def _parts(value: str) -> list[str]:
    """Of a class path or a list of jars; a coordinate has colons of its own."""
    return [part for part in value.replace(os.pathsep + "/", ",/").split(",") if part]


def _choose_worker_python(given: dict[str, str]) -> None:
    """Workers run `python3` of the PATH if nothing is said, which need not be this one."""
    if "spark.pyspark.python" in given:
        return
    python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = given.get("spark.master", os.environ.get("MASTER", "local"))
    if master.startswith("local"):
        check_worker_python(python)
