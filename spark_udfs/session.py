"""A Spark session with settings for Kafka pipelines in Python.

All checks are made, and all settings are set on the builder, before a JVM starts. Settings of the
user take precedence, wherever they were set: on the builder, in `PYSPARK_SUBMIT_ARGS`, in a
properties file, or in the running session. If a JVM already runs (spark-submit, a notebook with its
own session, an earlier session of this process), its settings are read; jars cannot be added to it.
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
from spark_udfs.spark_submit_conf import file_settings, submitted_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure_spark"]

# Unix sockets to Python workers: 29 ms a task instead of 55, and 3 to 5 % more rows (Spark ≥ 4.1).
# `toPandas` and `createDataFrame` use Arrow; their default is pickled rows.
SETTINGS: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_CONNECT: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


def configure_spark(builder: "SparkSession.Builder", kafka: bool = False) -> "SparkSession.Builder":
    """Set defaults for Python workers, their sockets, Arrow, and the jars of the Kafka connector.

        spark = configure_spark(SparkSession.builder.master("local[*]"), kafka=True).getOrCreate()

    Python workers run this Python (`PYSPARK_PYTHON`) unless the environment names another one. On a
    cluster the path must exist on its machines.

    Args:
        builder: A builder of a session. If a session already runs, its static settings stay.
        kafka: Also ensure that Spark's Kafka connector is available. Jars are added as found by
            `connector_jars`, unless `spark.jars` or `spark.jars.packages` already name the
            connector. A running JVM must already have it.

    Returns:
        The same builder.

    Raises:
        ConnectorMissing: `kafka`, and the jars are not available or incompatible with Spark.
        SparkSetupError: Java or PySpark is missing, workers would run another Python, or settings
            could not be read by Spark. Also for Spark Connect, whose server has its own settings.
        TypeError: `builder` is not a session builder.
    """
    options = _options(builder)
    if any(name in os.environ for name in _CONNECT) or _is_connect(options):
        raise SparkSetupError(
            "this is Spark Connect (as are Databricks Connect and serverless notebooks), whose server has its own "
            "jars and Python workers: configure it where it starts, and leave configure_spark out here"
        )
    # PySpark 4.3 warns on the first use of pandas 3. Only columns of bytes are used here, and all
    # tests run with pandas 3.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    jvm = running_jvm()
    wanted = _wanted_of(jvm, options, kafka) if jvm else _wanted(options, kafka)
    for name, value in wanted.items():
        builder.config(name, value)
    return builder


def _options(builder: "SparkSession.Builder") -> dict[str, str]:
    """Return the settings of the builder. PySpark has no public accessor for them."""
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
    """Return the settings for a running JVM. `getOrCreate` also applies them to its session."""
    from pyspark import SparkContext

    given = settings_of(jvm) | options
    if kafka:
        connector_of(jvm)
    if SparkContext._active_spark_context is None:
        _choose_worker_python(given)
    return {name: value for name, value in SETTINGS.items() if name not in given}


def _wanted(options: dict[str, str], kafka: bool) -> dict[str, str]:
    """Return the settings for a JVM that `getOrCreate` will start."""
    spark = installed_spark()
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")  # PySpark's default
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
    """Return the settings that add the connector; empty if the user added it."""
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
    """Split a class path or a list of jars. A coordinate contains colons, so only ":/" splits."""
    return [part for part in value.replace(os.pathsep + "/", ",/").split(",") if part]


def _choose_worker_python(given: dict[str, str]) -> None:
    """Set the Python of the workers. The default is `python3` on the PATH, maybe another Python."""
    if "spark.pyspark.python" in given:
        return
    python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = given.get("spark.master", os.environ.get("MASTER", "local"))
    if master.startswith("local"):
        check_worker_python(python)
