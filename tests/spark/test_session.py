"""`configure_spark` sets what is missing, keeps what the user set, and says what to do before Spark fails."""

import sys
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_udfs import SparkSetupError, configure_spark
from tests.support.spark import connector_folder


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As if no session ran in this process, and nothing were said about Spark in the environment."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    for name in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYKAFKA_CONNECTOR_JARS", str(connector_folder()))
    return monkeypatch


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def set_by(builder: SparkSession.Builder) -> dict[str, str]:
    return dict(builder._options)


def test_workers_run_this_python_and_the_connector_is_loaded(spark: SparkSession) -> None:
    @F.udf("string")
    def executable(_: int) -> str:
        import sys

        return sys.executable

    assert spark.range(1).select(executable("id")).collect()[0][0] == sys.executable
    assert "spark-sql-kafka" in str(spark.conf.get("spark.jars"))
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"


def test_a_running_session_is_taken_as_it_is_or_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYKAFKA_CONNECTOR_JARS", str(connector_folder()))
    assert configure_spark(SparkSession.builder).getOrCreate() is spark
    other = SparkSession.builder.config("spark.jars", "/other.jar")
    with pytest.raises(SparkSetupError, match=r"runs already without spark\.jars: stop it first"):
        configure_spark(other)


def test_the_jvm_of_a_stopped_session_keeps_its_jars(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # as spark.stop() leaves it
    monkeypatch.setenv("PYKAFKA_CONNECTOR_JARS", str(connector_folder()))
    assert "spark.jars" in set_by(configure_spark(SparkSession.builder))
    with pytest.raises(SparkSetupError, match=r"left a JVM without .* restart Python"):
        configure_spark(SparkSession.builder.config("spark.jars", "/other.jar"))


@pytest.mark.usefixtures("alone")
def test_what_the_user_set_stays() -> None:
    builder = SparkSession.builder.config("spark.python.unix.domain.socket.enabled", "false")
    options = set_by(configure_spark(builder.config("spark.jars", "/mine.jar")))
    assert options["spark.python.unix.domain.socket.enabled"] == "false"
    assert options["spark.sql.execution.arrow.pyspark.enabled"] == "true"
    first, *rest = options["spark.jars"].split(",")
    assert first == "/mine.jar"
    assert {Path(jar).parent for jar in rest} == {connector_folder()}


@pytest.mark.usefixtures("alone")
def test_a_connector_that_the_user_names_is_not_added_again() -> None:
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    options = set_by(configure_spark(SparkSession.builder.config("spark.jars.packages", package)))
    assert "spark.jars" not in options
    assert "spark.jars" not in set_by(configure_spark(SparkSession.builder, kafka=False))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("version", ["2.12:3.5.1", "2.13:3.5.1", "2.13:99.0.0", "2.12:4.2.0"])
def test_a_connector_for_another_spark_is_refused_by_name(version: str) -> None:
    package = f"a:b:1,org.apache.spark:spark-sql-kafka-0-10_{version}"
    with pytest.raises(SparkSetupError, match=f"is for Spark .* use .*{pyspark.__version__}"):
        configure_spark(SparkSession.builder.config("spark.jars.packages", package))


def test_a_missing_or_old_java_is_named(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match=r"needs Java.* install a JDK 17"):
        configure_spark(SparkSession.builder)
    script(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.2"' >&2""")
    with pytest.raises(SparkSetupError, match=r"needs Java 17.*11\.0\.2.*: install a JDK 17"):
        configure_spark(SparkSession.builder)


def test_a_python_that_cannot_run_workers_is_named(
    alone: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = {
        "does not run": tmp_path / "nowhere",
        "is Python 3.9, the driver is": script(tmp_path / "old", "echo 3.9"),
        "No module named 'pyarrow'": script(tmp_path / "bare", f'exec {sys.executable} -S "$@"'),
    }
    for said, python in wrong.items():
        alone.setenv("PYSPARK_PYTHON", str(python))
        with pytest.raises(SparkSetupError, match=said) as caught:
            configure_spark(SparkSession.builder)
        assert f"set PYSPARK_PYTHON={sys.executable}" in str(caught.value)


def test_a_cluster_may_have_a_python_of_its_own(alone: pytest.MonkeyPatch) -> None:
    alone.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    configure_spark(SparkSession.builder.master("spark://127.0.0.1:7077"))


def test_a_spark_home_of_another_version_is_named(
    alone: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match=r"no Spark at .*: unset SPARK_HOME"):
        configure_spark(SparkSession.builder)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    with pytest.raises(SparkSetupError, match=r"holds Spark 3\.5\.1: unset SPARK_HOME"):
        configure_spark(SparkSession.builder)


def test_an_old_pyspark_is_named(alone: pytest.MonkeyPatch) -> None:
    alone.setattr(pyspark, "__version__", "4.1.4")
    with pytest.raises(SparkSetupError, match=r"4\.1\.4 is installed and 4\.2 or later"):
        configure_spark(SparkSession.builder)


@pytest.mark.usefixtures("alone")
def test_a_connect_server_is_configured_where_it_starts() -> None:
    with pytest.raises(SparkSetupError, match="configure it where it starts"):
        configure_spark(SparkSession.builder.remote("sc://127.0.0.1:15002"))
