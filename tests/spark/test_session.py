"""`configure_spark` adds missing settings, keeps the user's, and advises before Spark fails."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas
import pyspark
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.utils import require_minimum_pandas_version

from spark_udfs import (
    ConnectorMissing,
    SparkSetupError,
    configure_spark,
    connector_jars,
    jvm,
    session,
)
from spark_udfs.environment import installed_spark
from tests.support.costs import charge
from tests.support.patience import seconds
from tests.support.spark import class_archive

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Simulates a process without a session, and an environment without Spark."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    for name in (
        *("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "SPARK_API_MODE"),
        *("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "MASTER"),
    ):
        monkeypatch.delenv(name, raising=False)
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


def test_jvm_maps_the_archive_of_classes(spark: SparkSession) -> None:
    gateway = SparkContext._gateway
    assert gateway is not None
    maps = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert (str(class_archive.FILE) in maps) == class_archive.FILE.is_file()


def test_running_session_with_the_connector_is_reused(spark: SparkSession) -> None:
    assert configure_spark(SparkSession.builder, kafka=True).getOrCreate() is spark
    other = SparkSession.builder.config("spark.jars", "/other.jar")
    assert set_by(configure_spark(other, kafka=True))["spark.jars"] == "/other.jar"


@pytest.mark.usefixtures("spark")
def test_pandas_3_causes_no_warning_once_a_session_is_configured() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        require_minimum_pandas_version()
        before = len(told)
        configure_spark(SparkSession.builder)
        require_minimum_pandas_version()
    assert len(told) == before == int(pandas.__version__.startswith("3."))


@pytest.mark.usefixtures("spark")
def test_jvm_without_the_connector_is_rejected_with_the_remedies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jvm, "_PROVIDER", "org.example.NoSuchProvider")
    configure_spark(SparkSession.builder)
    with pytest.raises(ConnectorMissing, match=r"session that runs .*Databricks .* to the cluster"):
        configure_spark(SparkSession.builder, kafka=True)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # like spark.stop()
    with pytest.raises(ConnectorMissing, match=r"left a JVM without .* restart Python"):
        configure_spark(SparkSession.builder, kafka=True)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(ConnectorMissing, match=r"spark-submit .* by --packages or --jars; use org"):
        configure_spark(SparkSession.builder, kafka=True)


PROGRAM = """
from pyspark.sql import SparkSession
from spark_udfs import ConnectorMissing, configure_spark

try:
    spark = configure_spark(SparkSession.builder, kafka=True).getOrCreate()
    reader = spark.read.format("kafka").option("subscribe", "t")
    reader.option("kafka.bootstrap.servers", "127.0.0.1:1").load()
    print("loaded", spark.conf.get("spark.sql.execution.arrow.pyspark.enabled"))
    spark.stop()
except ConnectorMissing as error:
    print(error)
"""


def submit(home: Path, *options: str) -> str:
    """Return the output of a program that spark-submit runs."""
    charge("jvm")
    program = home / "program.py"
    program.write_text(PROGRAM)
    command = [str(installed_spark().home / "bin" / "spark-submit"), "--master", "local[1]"]
    command += [
        "--conf",
        "spark.ui.enabled=false",
        "--driver-java-options",
        "-XX:TieredStopAtLevel=1",
    ]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *options, str(program)],
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds(600),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.jvm
def test_spark_submit_with_jars_brings_the_connector(tmp_path: Path) -> None:
    jars = ",".join(str(jar) for jar in connector_jars())
    assert "loaded true" in submit(tmp_path, "--jars", jars)


@pytest.mark.jvm
def test_spark_submit_without_the_connector_names_the_missing_option(tmp_path: Path) -> None:
    assert "add it by --packages or --jars" in submit(tmp_path)


@pytest.mark.jvm
@pytest.mark.usefixtures("alone")
def test_settings_of_the_user_are_kept() -> None:
    builder = SparkSession.builder.config("spark.python.unix.domain.socket.enabled", "false")
    options = set_by(configure_spark(builder.config("spark.jars", "/mine.jar"), kafka=True))
    assert options["spark.python.unix.domain.socket.enabled"] == "false"
    assert options["spark.sql.execution.arrow.pyspark.enabled"] == "true"
    assert options["spark.jars"].split(",") == ["/mine.jar", *map(str, connector_jars())]


@pytest.mark.jvm
def test_settings_in_spark_defaults_are_kept(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.python.unix.domain.socket.enabled  false\nspark.jars=/mine.jar\n"
    )
    alone.setenv("SPARK_CONF_DIR", str(tmp_path))
    options = set_by(configure_spark(SparkSession.builder, kafka=True))
    assert "spark.python.unix.domain.socket.enabled" not in options
    assert options["spark.jars"].split(",") == ["/mine.jar", *map(str, connector_jars())]


@pytest.mark.jvm
def test_settings_in_submit_arguments_are_kept(alone: pytest.MonkeyPatch) -> None:
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    socket = "spark.python.unix.domain.socket.enabled"
    alone.setenv("PYSPARK_SUBMIT_ARGS", f"--packages={package} --conf {socket}=false pyspark-shell")
    options = set_by(configure_spark(SparkSession.builder, kafka=True))
    assert options.keys().isdisjoint({"spark.jars", socket})
    alone.setenv("PYSPARK_SUBMIT_ARGS", "--jars /mine.jar pyspark-shell")
    with pytest.raises(
        SparkSetupError, match=r"overrides .* by --jars /mine\.jar,.*spark-sql-kafka"
    ):
        configure_spark(SparkSession.builder, kafka=True)


@pytest.mark.jvm
def test_settings_in_a_file_of_submit_arguments_are_kept(
    alone: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.python.unix.domain.socket.enabled false\nspark.jars /default.jar\n"
    )
    file = tmp_path / "mine.conf"
    arrow = "spark.sql.execution.arrow.pyspark.enabled"
    file.write_bytes(
        f"# f\xfcr uns\nspark.jars /a.jar,\\\n  /b.jar\n{arrow} false\n".encode("latin-1")
    )
    alone.setenv("SPARK_CONF_DIR", str(tmp_path))
    alone.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {file} pyspark-shell")
    options = set_by(configure_spark(SparkSession.builder, kafka=True))
    assert options["spark.jars"].split(",") == ["/a.jar", "/b.jar", *map(str, connector_jars())]
    assert (
        options["spark.python.unix.domain.socket.enabled"] == "true"
    )  # the file replaces the defaults
    assert arrow not in options
    alone.setenv(
        "PYSPARK_SUBMIT_ARGS", f"--load-spark-defaults --properties-file={file} pyspark-shell"
    )
    options = set_by(configure_spark(SparkSession.builder, kafka=True))
    assert options.keys().isdisjoint({arrow, "spark.python.unix.domain.socket.enabled"})
    assert options["spark.jars"].startswith("/a.jar,/b.jar,")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--conf spark.x pyspark-shell", "says --conf spark.x: a setting is NAME=VALUE"),
        ("--master local[2]", r"must end with pyspark-shell, or be unset; it is: --master local\[2\]"),
        ("", "must end with pyspark-shell, or be unset"),
        ("--conf 'spark.x=y pyspark-shell", r"PYSPARK_SUBMIT_ARGS cannot be read \(No closing quotation\)"),
        ("--properties-file /nowhere pyspark-shell", "--properties-file /nowhere: there is no such file"),
    ],
)  # fmt: skip
def test_invalid_submit_arguments_are_named(
    alone: pytest.MonkeyPatch, arguments: str, text: str
) -> None:
    alone.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    with pytest.raises(SparkSetupError, match=text):
        configure_spark(SparkSession.builder)


def test_settings_of_a_running_session_are_kept(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This session had both of our settings at its start; a setting that it lacks replaces them.
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    monkeypatch.setattr(session, "SETTINGS", {name: "5"})
    spark.conf.set(name, "7")
    try:
        assert configure_spark(SparkSession.builder).getOrCreate() is spark
        assert spark.conf.get(name) == "7"
    finally:
        spark.conf.unset(name)


@pytest.mark.parametrize("other", [None, "local[2]", SparkSession])
def test_argument_that_is_not_a_builder_is_rejected(other: Any) -> None:
    with pytest.raises(TypeError, match=r"takes the builder .* such as SparkSession\.builder, not"):
        configure_spark(other)


@pytest.mark.jvm
def test_nothing_is_fetched_unless_kafka_is_requested(
    alone: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """README's snippet, in an environment without the connector."""
    alone.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "spark.jars" not in set_by(configure_spark(SparkSession.builder))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.jvm
@pytest.mark.usefixtures("alone")
def test_connector_that_the_user_named_is_not_added_again() -> None:
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    builder = SparkSession.builder.config("spark.jars.packages", package)
    assert "spark.jars" not in set_by(configure_spark(builder, kafka=True))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("version", ["2.12:3.5.1", "2.13:3.5.1", "2.13:99.0.0", "2.12:4.2.0"])
def test_connector_for_another_spark_is_rejected_by_name(version: str) -> None:
    package = f"a:b:1,org.apache.spark:spark-sql-kafka-0-10_{version}"
    with pytest.raises(SparkSetupError, match=f"is for Spark .* use .*{pyspark.__version__}"):
        configure_spark(SparkSession.builder.config("spark.jars.packages", package), kafka=True)


def test_a_missing_or_old_java_is_named(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match=r"needs Java.* install a JDK 17"):
        configure_spark(SparkSession.builder)
    picked = "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2\n"
    script(tmp_path / "bin" / "java", picked + """echo 'openjdk version "11.0.2"' >&2""")
    with pytest.raises(SparkSetupError, match=r"java is openjdk.*11\.0\.2.*: install a JDK 17"):
        configure_spark(SparkSession.builder)
    script(tmp_path / "bin" / "java", picked)
    with pytest.raises(SparkSetupError, match=r"java prints no version: install a JDK 17"):
        configure_spark(SparkSession.builder)


@pytest.mark.jvm
def test_python_that_cannot_run_workers_is_named(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong = {
        "does not run": tmp_path / "nowhere",
        "is not a Python": script(tmp_path / "true", "exit 0"),
        "is Python 3.9, the driver is": script(tmp_path / "old", "echo 3.9"),
        "No module named 'pyarrow'": script(tmp_path / "bare", f'exec {sys.executable} -S "$@"'),
    }
    for said, python in wrong.items():
        alone.setenv("PYSPARK_PYTHON", str(python))
        with pytest.raises(SparkSetupError, match=said) as caught:
            configure_spark(SparkSession.builder)
        assert f"set PYSPARK_PYTHON={sys.executable}" in str(caught.value)


@pytest.mark.jvm
def test_cluster_may_use_another_python(alone: pytest.MonkeyPatch) -> None:
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
@pytest.mark.parametrize(
    "builder",
    [
        SparkSession.builder.remote("sc://127.0.0.1:15002"),
        SparkSession.builder.config("spark.api.mode", "connect"),
    ],
)
def test_connect_server_must_be_configured_where_it_starts(builder: SparkSession.Builder) -> None:
    with pytest.raises(SparkSetupError, match=r"Connect .*configure it where it starts"):
        configure_spark(builder)
