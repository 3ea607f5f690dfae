"""All minor versions of PySpark that the extra `spark` allows; the other tests use one of them.

`spark_udfs` uses internals of Spark's JVM without a public interface, such as the plan of a batch.
These tests find a class or method that another version lacks.
"""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from py4j.java_gateway import JavaObject

import spark_udfs
from pykafka_core.errors import ConfigurationError, UsageError
from pykafka_core.idempotent import Ledger, PostgresLedger, SQLiteLedger
from spark_udfs import IdempotentSink, SparkSetupError, environment
from tests.spark.everything import (
    FIRST_RUN,
    INSTALMENTS,
    PARTITIONS,
    TOPIC,
    WHERE,
    EffectOn,
    Given,
    check,
    send,
)
from tests.support.brokers import Serve
from tests.support.patience import seconds
from tests.support.postgres import PostgresServer
from tests.support.spark.drivers import run_driver
from tests.support.spark.pipeline import COLUMNS, run, stream
from tests.support.spark.versions import allowed_minors, pins, pyspark_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = FIRST_RUN["records"]
MINORS = allowed_minors()
INSTALLED = ".".join(version("pyspark").split(".")[:2])
DOWNLOAD_S_MAX = seconds(3600)


def test_the_suite_runs_with_a_version_that_the_extra_allows() -> None:
    extra, group = pins()
    assert extra == group
    assert INSTALLED in MINORS


def test_minimum_version_of_the_extra_is_the_minimum_that_is_accepted() -> None:
    least = ".".join(map(str, environment.SPARK_VERSION_MIN))
    assert least == MINORS[0]


@pytest.mark.jvm
@pytest.mark.timeout(DOWNLOAD_S_MAX)
@pytest.mark.parametrize("minor", [one for one in MINORS if one != INSTALLED])
def test_everything_works_with_each_minor_version(
    serve: Serve, minor: str, postgres_dsn: str, tmp_path: Path
) -> None:
    with serve() as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        given = Given(
            master="local[2]",
            bootstrap=broker.bootstrap_servers,
            sqlite=str(tmp_path / "orders.db"),
            postgres=postgres_dsn,
            folder=str(tmp_path),
        )
        found = run_driver(
            "tests.spark.everything", given._asdict(), folder=tmp_path, first=pyspark_of(minor)
        )
    assert found["spark"].startswith(f"{minor}.")
    assert found["workers"] == [found["spark"]]
    check(found)


CHECKS = {
    "activeStreamingQueries",
    "apply",
    "availableOffsets",
    "get",
    "getClass",
    "getDeclaredField",
    "getName",
    "getStartOffsetsOfLatestBatch",
    "initialOffset",
    "isEmpty",
    "json",
    "runId",
    "setAccessible",
    "sharedState",
    "size",
    "sources",
    "toString",
}
"""Methods of classes of Spark, Scala and Java that return the plan of a batch, or the options of
its source."""
PLACES = {
    "dependencies",
    "fromOffset",
    "inputPartition",
    "offsetRange",
    "partition",
    "partitions",
    "queryExecution",
    "rdd",
    "toRdd",
    "topic",
    "untilOffset",
}
"""Methods that return which task reads which partition; without one, rows are shuffled."""
CLASSES = "the names of classes"
QUERY_ID = "sql.streaming.queryId"
"""The thread property that Spark sets for a batch."""
ASKED: dict[EffectOn, set[str]] = {"driver": CHECKS, "executors": CHECKS | PLACES}


@contextmanager
def calls_of_ours(renamed: str = "") -> Iterator[set[str]]:
    """Record the methods of Java objects that `spark_udfs` calls; ``renamed`` is missing."""
    ours = str(Path(spark_udfs.__file__).parent)
    called: set[str] = set()
    find = JavaObject.__getattr__

    def look_up(java: Any, name: str) -> Any:
        if not sys._getframe(1).f_code.co_filename.startswith(ours):
            return find(java, name)
        called.add(name)
        if renamed == CLASSES and name == "getName":
            return lambda: f"{find(java, name)()}Renamed"
        return find(java, f"{name}Renamed" if name == renamed else name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JavaObject, "__getattr__", look_up)
        yield called


class Outcome(NamedTuple):
    """The result of a batch without one method; ``error`` is empty if it succeeded."""

    error: str
    processed: int


class FirstBatch:
    """A batch that new groups process, one after the other."""

    def __init__(self, brokers: str, ledgers: dict[EffectOn, Ledger]) -> None:
        self._brokers, self._ledgers = brokers, ledgers
        self.called: dict[EffectOn, set[str]] = {}
        self.outcomes: dict[tuple[EffectOn, str], Outcome] = {}

    def process(self, df: "DataFrame", batch_id: int) -> None:
        """Process it with Spark unchanged, and then without each method."""
        for where in WHERE:
            with calls_of_ours() as self.called[where]:
                assert self._outcome(where, "", df, batch_id) == Outcome("", RECORDS)
            for name in (*ASKED[where], CLASSES):
                with calls_of_ours(renamed=name):
                    self.outcomes[where, name] = self._outcome(where, name, df, batch_id)
        context = df.sparkSession.sparkContext
        query_id = context.getLocalProperty(QUERY_ID)
        context.setLocalProperty(QUERY_ID, None)  # type: ignore[arg-type]
        self.outcomes["driver", QUERY_ID] = self._outcome("driver", QUERY_ID, df, batch_id)
        context.setLocalProperty(QUERY_ID, str(query_id))

    def _outcome(self, where: EffectOn, group: str, df: "DataFrame", batch_id: int) -> Outcome:
        sink = IdempotentSink(
            self._ledgers[where],
            f"without {group}",
            effect=no_effect,
            brokers=self._brokers,
            effect_on=where,
        )
        error = ""
        try:
            sink.foreach_batch(df, batch_id)
        except (SparkSetupError, ConfigurationError, UsageError) as refused:
            error = str(refused)
        return Outcome(error, sink.statistics().processed)


def no_effect(*_: object) -> None:
    """Do nothing: only the ledger is tested."""


@pytest.fixture(scope="module")
def batch(
    serve: Serve,
    spark: "SparkSession",
    postgres_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[FirstBatch]:
    home = tmp_path_factory.mktemp("first-batch")
    with (
        serve() as broker,
        closing(SQLiteLedger(home / "ledger.db")) as on_driver,
        closing(PostgresLedger(postgres_server.create_schema())) as on_server,
    ):
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        send(broker.bootstrap_servers, INSTALMENTS[0])
        first = FirstBatch(broker.bootstrap_servers, {"driver": on_driver, "executors": on_server})
        df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
        run(df, home / "checkpoint", first.process)
        yield first


def test_all_spark_methods_that_a_batch_needs_are_tested(batch: FirstBatch) -> None:
    assert batch.called == ASKED


@pytest.mark.parametrize("name", sorted(CHECKS))
@pytest.mark.parametrize("where", WHERE)
def test_removed_spark_method_stops_the_query_by_name(
    batch: FirstBatch, spark: "SparkSession", where: EffectOn, name: str
) -> None:
    error, processed = batch.outcomes[where, name]
    assert f"Spark {spark.version}" in error
    assert f"{name}Renamed" in error
    assert processed == 0


@pytest.mark.parametrize("where", WHERE)
def test_removed_spark_class_stops_the_query_by_name(
    batch: FirstBatch, spark: "SparkSession", where: EffectOn
) -> None:
    error, processed = batch.outcomes[where, CLASSES]
    assert f"Spark {spark.version}" in error
    assert "KafkaMicroBatchStreamRenamed" in error
    assert processed == 0


@pytest.mark.parametrize("name", sorted(PLACES))
def test_shuffle_replaces_task_locations_that_spark_no_longer_reports(
    batch: FirstBatch, name: str
) -> None:
    assert batch.outcomes["executors", name] == Outcome("", RECORDS)


def test_batch_without_the_id_of_its_query_is_rejected(batch: FirstBatch) -> None:
    """For example if the user's function uses another thread: properties belong to a thread."""
    assert (
        "not the thread that Spark calls foreachBatch on"
        in batch.outcomes["driver", QUERY_ID].error
    )
