"""The plan is read from Spark's internals; a missing one stops the query, and is named."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JError

from pykafka_core.errors import ConfigurationError, UsageError
from spark_udfs import SparkSetupError
from spark_udfs.sink.micro_batch_plan import Planned, StreamPlan, agreed, planned, run_of
from spark_udfs.sink.topic_partition import Range

KAFKA = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"


def option(value: object) -> SimpleNamespace:
    """Return a Scala option."""
    return SimpleNamespace(isEmpty=lambda: value is None, get=lambda: value)


class Queries(dict[str, object]):
    """A Java map."""

    def isEmpty(self) -> bool:
        return not self


def offsets(text: str) -> SimpleNamespace:
    return SimpleNamespace(json=lambda: text)


def execution(class_name: str = KAFKA, **options: str) -> SimpleNamespace:
    """Return the execution of a query with one source."""
    field = SimpleNamespace(setAccessible=lambda _: None, get=lambda _: options)
    source = SimpleNamespace(
        getClass=lambda: SimpleNamespace(
            getName=lambda: class_name, getDeclaredField=lambda name: {"options": field}[name]
        ),
        initialOffset=lambda: offsets('{"orders": {"0": 3}}'),
    )
    sources = SimpleNamespace(size=lambda: 1, apply=lambda _: source)
    ends = SimpleNamespace(get=lambda _: option(offsets('{"orders": {"0": 7, "1": 2}}')))
    return SimpleNamespace(
        sources=lambda: sources,
        getStartOffsetsOfLatestBatch=lambda: SimpleNamespace(get=lambda _: option(None)),
        availableOffsets=lambda: ends,
        runId=lambda: SimpleNamespace(toString=lambda: "run"),
    )


def frame(running: object, query_id: str | None = "id") -> Any:
    """Return a micro-batch on the thread of a query, if there is an id."""
    state = SimpleNamespace(activeStreamingQueries=lambda: Queries(id=running))
    uuid = SimpleNamespace(fromString=lambda text: text)
    session = SimpleNamespace(
        version="9.9",
        sparkContext=SimpleNamespace(getLocalProperty=lambda _: query_id),
        _jsparkSession=SimpleNamespace(sharedState=lambda: state),
        _jvm=SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(UUID=uuid))),
    )
    return SimpleNamespace(sparkSession=session)


def gone(*_: object) -> Any:
    raise Py4JError("Method does not exist")


def test_a_first_batch_starts_at_the_initial_offset_and_new_partitions_at_0() -> None:
    plan = {("orders", 0): Range(3, 7), ("orders", 1): Range(0, 2)}
    assert planned(frame(execution())) == Planned(plan)


@pytest.mark.parametrize("name", ["sources", "availableOffsets", "getStartOffsetsOfLatestBatch"])
def test_missing_spark_internal_stops_the_query_and_names_the_version(name: str) -> None:
    running = execution()
    setattr(running, name, gone)
    with pytest.raises(
        SparkSetupError, match=r"Spark 9\.9 does not report .*Method does not exist"
    ):
        planned(frame(running))
    delattr(running, name)
    with pytest.raises(SparkSetupError, match=rf"Spark 9\.9 does not report .*{name}"):
        planned(frame(running))


def test_missing_query_id_stops_the_query_by_name() -> None:
    with pytest.raises(SparkSetupError, match="there is no query id"):
        planned(frame(None))


def test_run_has_the_id_that_spark_gives_each_start() -> None:
    assert run_of(frame(execution())) == "run"
    assert run_of(frame(execution(), query_id=None)) is None
    running = execution()
    del running.runId
    with pytest.raises(SparkSetupError, match=r"Spark 9\.9 does not report .*runId"):
        run_of(frame(running))


def test_rows_on_a_thread_outside_the_query_are_rejected_as_wrong_usage() -> None:
    with pytest.raises(UsageError, match="by hand, stop the application's queries first"):
        planned(frame(execution(), query_id=None))


def test_a_source_of_another_class_stops_the_query_by_its_name() -> None:
    with pytest.raises(ConfigurationError, match=r"only org\.Renamed \(Spark 9\.9\)"):
        planned(frame(execution("org.Renamed")))


def test_a_fixed_group_id_stops_the_query() -> None:
    running = execution(**{"kafka.group.id": "billing"})
    with pytest.raises(
        ConfigurationError, match=r"kafka\.group\.id='billing': .* give groupIdPrefix"
    ):
        planned(frame(running))


places = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2))
ranges = st.tuples(st.integers(0, 2), st.integers(2, 3)).map(lambda at: Range(*at))
plans = st.lists(st.dictionaries(places, ranges, max_size=4), max_size=3)


@given(plans)
def test_streams_that_share_a_partition_agree_on_its_topic_or_are_rejected(
    streams: list[StreamPlan],
) -> None:
    of_topics = [
        {place: at for place, at in stream.items() if place[0] == topic}
        for topic in ("a", "b")
        for stream in streams
    ]
    differ = any(
        one.keys() & other.keys() and one != other for one in of_topics for other in of_topics
    )
    merged = {place: at for stream in streams for place, at in stream.items()}
    try:
        assert agreed(streams) == Planned(merged)
        assert not differ
    except ConfigurationError:
        assert differ
