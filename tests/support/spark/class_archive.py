"""The archive of classes that the tests' JVMs of Spark map (JEP 350).

``python -m tests.support.spark.class_archive`` creates it. A JVM needs 10 s of CPU time to start a
session and run its first query, and 6 s with the archive. It ignores an archive of another JVM or
for other jars.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "target" / "spark.jsa"

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_VARIABLE = "SPARK_SUBMIT_OPTS"
"""Options of the JVM that Spark's launcher starts."""

_PROGRAM = """
import sys
from pathlib import Path

from pyspark.sql.functions import pandas_udf

from tests.support.spark.session import start_session

folder = Path(sys.argv[1])
session = start_session(folder)
session.range(9).selectExpr("id % 3 AS k").groupBy("k").count().write.parquet(f"{folder}/rows")
rows = session.readStream.schema("k long, count long").parquet(f"{folder}/rows")
keys = pandas_udf("long")(lambda key: key + 1)
stream = rows.select(keys("k").alias("k")).dropDuplicates()
stream = stream.writeStream.foreachBatch(lambda batch, number: batch.collect())
stream = stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
stream.start().awaitTermination()
jvm = session.sparkContext._gateway.proc
session.stop()
jvm.stdin.close()
jvm.wait()
"""


def install() -> None:
    """Pass the archive, if it exists, to the JVMs that child processes start."""
    if FILE.is_file():
        os.environ.setdefault(_VARIABLE, _options("-Xshare:auto", f"-XX:SharedArchiveFile={FILE}"))


def make() -> None:
    """Run a query and a stream, and store the classes that they load.

    Raises:
        SystemExit: The session failed, or its JVM created no archive; the text has their output.
    """
    FILE.parent.mkdir(exist_ok=True)
    part = FILE.with_suffix(".part")
    part.unlink(missing_ok=True)
    options = _options(f"-XX:ArchiveClassesAtExit={part}")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, folder],
            cwd=ROOT,
            env=os.environ | {_VARIABLE: options},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0 or not part.is_file():
        sys.exit(f"no archive of Spark's classes:\n{done.stdout}{done.stderr}")
    part.replace(FILE)


def _options(*options: str) -> str:
    return shlex.join((*options, *_QUIET))


if __name__ == "__main__":
    make()
