"""`configure_spark` sets what is missing, keeps what the user set, and says what to do before Spark fails."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_workers_run_this_python_and_the_connector_is_loaded(spark: SparkSession) -> None:
    @F.udf("string")
    def executable(_: int) -> str:
        import sys

        return sys.executable

    assert spark.range(1).select(executable("id")).collect()[0][0] == sys.executable
    assert "spark-sql-kafka" in str(spark.conf.get("spark.jars"))
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
