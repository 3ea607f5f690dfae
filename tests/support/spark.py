"""The session that all Spark tests share, and the connector's jars.

`python -m tests.support.spark` prints the folder of the jars, for `PYKAFKA_CONNECTOR_JARS`.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.alone import alone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POM = Path(__file__).resolve().parent.parent / "spark" / "pom.xml"


def connector_folder() -> Path:
    """The folder of the connector's jars, fetched by `tests/spark/pom.xml` when first asked for."""
    folder = POM.parent / "target" / "jars"
    with alone(folder.parent):
        if folder.exists() and folder.stat().st_mtime >= POM.stat().st_mtime:
            return folder
        part = folder.with_name("part")
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        command.append(f"-DoutputDirectory={part}")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        return folder


def start_session(warehouse: Path, master: str = "local[2,2]") -> "SparkSession":
    """Two cores, two attempts a task, two shuffle partitions, no web server, UTC; it writes under `warehouse` only."""
    from pyspark.sql import SparkSession

    from spark_udfs.session import configure_spark

    os.environ["PYKAFKA_CONNECTOR_JARS"] = str(connector_folder())
    # Most of what a test runs runs once: compiling it well costs more than it saves.
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    builder = SparkSession.builder.master(master).config(
        map={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            # Spark matches the traces of failed tasks with recursive regular expressions, too deep for the
            # default stack.
            "spark.driver.extraJavaOptions": f"{java} -Xss4m",
            "spark.executor.extraJavaOptions": java,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(warehouse / "warehouse"),
            "spark.local.dir": str(warehouse / "local"),
            "spark.log.level": "ERROR",
        }
    )
    return configure_spark(builder).getOrCreate()


if __name__ == "__main__":
    print(connector_folder())
