"""The session that all Spark tests share. It is configured like a user's: `configure_spark` adds
the connector.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.costs import charge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(warehouse: Path, master: str = "local[2,2]", **settings: str) -> "SparkSession":
    """Start a session with two cores, two attempts per task, two shuffle partitions and UTC,
    without a web server; it only writes below `warehouse`.
    """
    from pyspark.sql import SparkSession

    from spark_udfs.session import configure_spark

    charge("spark")

    # Most code of a test runs once, so optimizing compilation costs more than it saves.
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    builder = SparkSession.builder.master(master).config(
        map={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            # Spark matches the traces of failed tasks with recursive regular expressions, too deep
            # for the default stack.
            "spark.driver.extraJavaOptions": f"{java} -Xss4m",
            "spark.executor.extraJavaOptions": java,
            "spark.python.daemon.module": "tests.support.spark.daemon",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(warehouse / "warehouse"),
            "spark.local.dir": str(warehouse / "local"),
            "spark.log.level": "ERROR",
            **settings,
        }
    )
    return configure_spark(builder, kafka=True).getOrCreate()
