"""Cases for Spark's connector; each returns Spark's results, so that brokers can be compared.

A case asserts the properties that must hold in any event, so that two equally wrong brokers, or two
empty results, do not pass.
"""

from collections.abc import Callable
from functools import partial

from pyspark.sql import functions as F
from pyspark.sql import types as T

from tests.spark.sides import Event, Headers, Options, Side, failure, rows
from tests.support.patience import PATIENCE_S, seconds

Case = Callable[[Side], object]
CASES: dict[str, Case] = {}
START = 1_700_000_000_000  # ms; record n of a partition is n seconds later
YEAR_MS = 365 * 24 * 3600 * 1000
PARTITIONS, RECORDS = 3, 20


def case(function: Case) -> Case:
    """Register a case by its name."""
    CASES[function.__name__] = function
    return function


def events(partitions: int = PARTITIONS, records: int = RECORDS, first: int = 0) -> list[Event]:
    """Return records with null and empty keys and values, zero to two headers, a second apart."""
    headers: list[Headers] = [[], [("h", b"1")], [("h", b"1"), ("h", None)]]
    return [
        Event(
            partition=partition,
            key=[None, b"", b"key %d" % number][number % 3],
            value=[b"value %d" % number, b"", None, b"\x00\xff" * number][number % 4],
            timestamp=START + 1000 * number + partition,
            headers=headers[number % 3],
        )
        for number in range(first, first + records)
        for partition in range(partitions)
    ]


def filled(side: Side, topic: str, partitions: int = PARTITIONS, **config: str) -> str:
    """Create a topic with 20 records per partition."""
    side.create(topic, partitions, **config)
    side.produce(topic, events(partitions))
    return topic


def shared(side: Side) -> str:
    """Return the topic that read-only cases share."""
    topic = "shared"
    if topic not in side.admin.list_topics(timeout=PATIENCE_S).topics:
        filled(side, topic)
    return topic


def read(side: Side, options: Options) -> list[tuple[object, ...]]:
    """Return the rows of a batch read."""
    return rows(side.read(**options))


def each(values: dict[int, int], topic: str = "shared") -> dict[str, dict[str, int]]:
    """Return the JSON form of offsets or timestamps."""
    return {topic: {str(partition): value for partition, value in values.items()}}


# Reading a batch


@case
def all_columns_from_earliest_to_latest(side: Side) -> object:
    frame = side.read(subscribe=shared(side), includeHeaders="true")
    got = rows(frame)
    assert len(got) == PARTITIONS * RECORDS
    return frame.dtypes, got


@case
def offsets_by_json_with_minus_one_and_minus_two(side: Side) -> object:
    got = rows(
        side.read(
            subscribe=shared(side),
            startingOffsets=each({0: 5, 1: -2, 2: 19}),
            endingOffsets=each({0: 9, 1: 3, 2: -1}),
        )
    )
    assert len(got) == 4 + 3 + 1
    return got


@case
def times_for_all_partitions(side: Side) -> object:
    got = rows(
        side.read(
            subscribe=shared(side), startingTimestamp=START + 5000, endingTimestamp=START + 9001
        )
    )
    assert len(got) == 4 + 4 + 5
    return got


@case
def times_by_partition(side: Side) -> object:
    got = rows(
        side.read(
            subscribe=shared(side),
            startingOffsetsByTimestamp=each({0: 0, 1: START + 19_001, 2: START + 18_003}),
            endingOffsetsByTimestamp=each({0: START, 1: START + 99_000, 2: START + 99_000}),
        )
    )
    assert len(got) == 0 + 1 + 1
    return got


@case
def a_time_past_the_end_is_an_error_by_default(side: Side) -> object:
    late = {"startingTimestamp": START + 99_000}
    return failure(lambda: rows(side.read(subscribe=shared(side), **late)))


@case
def a_time_past_the_end_is_the_end_where_asked_so(side: Side) -> object:
    late = {"startingTimestamp": START + 99_000, "startingOffsetsByTimestampStrategy": "latest"}
    return rows(side.read(subscribe=shared(side), **late))


@case
def min_partitions_splits_ranges(side: Side) -> object:
    frame = side.read(subscribe=shared(side), minPartitions=6)
    split = frame.select("partition", "offset", F.spark_partition_id().alias("task"))
    got = rows(split)
    assert len({row[2] for row in got}) == 6
    return got


@case
def max_records_per_partition_splits_the_ranges_of_a_stream(side: Side) -> object:
    task = ("partition", "offset", F.spark_partition_id().alias("task"))
    options = {"subscribe": shared(side), "maxRecordsPerPartition": 5}
    [got] = side.batches(side.checkpoint(), *task, startingOffsets="earliest", **options)
    assert len({row[2] for row in got}) == PARTITIONS * RECORDS / 5
    return got, rows(side.read(**options).select(*task))


@case
def min_partitions_splits_the_ranges_of_a_stream(side: Side) -> object:
    task = ("partition", "offset", F.spark_partition_id().alias("task"))
    options = {"subscribe": shared(side), "startingOffsets": "earliest", "minPartitions": 6}
    [got] = side.batches(side.checkpoint(), *task, **options)
    assert len({row[2] for row in got}) == 6
    return got


@case
def assigned_partitions_alone(side: Side) -> object:
    got = rows(side.read(assign={shared(side): [0, 2]}))
    assert {row[3] for row in got} == {0, 2}
    return got


@case
def topics_by_list_and_by_pattern(side: Side) -> object:
    for name in ("many-a", "many-b", "other-c"):
        filled(side, name, 1)
    listed = rows(side.read(subscribe="many-a,other-c"))
    matched = rows(side.read(subscribePattern="many-.*"))
    assert len(listed) == len(matched) == 2 * RECORDS
    return listed, matched


@case
def an_empty_topic_has_no_rows(side: Side) -> object:
    return rows(side.read(subscribe=side.create("empty", 2)))


@case
def every_codec_is_read(side: Side) -> object:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    topic = side.create("codecs", len(codecs))
    for number, codec in enumerate(codecs):
        side.produce(topic, [Event(partition=number, value=b"v" * n) for n in range(300)], codec)
    got = rows(side.read(subscribe=topic).selectExpr("partition", "offset", "length(value) size"))
    assert len(got) == 300 * len(codecs)
    return got


@case
def append_time_is_told_apart(side: Side) -> object:
    topic = filled(side, "append-time", 1, message_timestamp_type="LogAppendTime")
    kind = side.read(subscribe=topic).selectExpr("offset", "timestampType", "timestamp")
    got = rows(kind)
    assert all(row[2] != START for row in got)
    return [row[:2] for row in got]


@case
def values_larger_than_a_fetch(side: Side) -> object:
    topic = side.create("large", 2)
    side.produce(topic, [Event(partition=n % 2, value=bytes([n]) * 300_000) for n in range(8)])
    limits = {"kafka__max.partition.fetch.bytes": 1000, "kafka__fetch.max.bytes": 1000}
    sizes = side.read(subscribe=topic, **limits).selectExpr(
        "partition", "offset", "length(value) size", "md5(value) digest"
    )
    got = rows(sizes)
    assert len(got) == 8
    return got


@case
def committed_and_uncommitted_are_the_same_without_transactions(side: Side) -> object:
    got = [
        rows(side.read(subscribe=shared(side), kafka__isolation__level=level))
        for level in ("read_committed", "read_uncommitted")
    ]
    assert len(got[0]) == PARTITIONS * RECORDS
    return got


@case
def a_fixed_group_id_needs_no_coordinator(side: Side) -> object:
    got = rows(side.read(subscribe=shared(side), kafka__group__id="fixed-" + side.name))
    assert len(got) == PARTITIONS * RECORDS
    return got


@case
def records_deleted_before_the_read(side: Side) -> object:
    topic = filled(side, "deleted-before")
    side.delete_records(topic, {0: 7, 1: 20})
    got = rows(side.read(subscribe=topic))
    assert len(got) == 13 + 0 + 20
    return got


@case
def a_start_below_the_log_is_data_loss(side: Side) -> object:
    topic = filled(side, "lost", 2)
    side.delete_records(topic, {0: 7})
    start = {"subscribe": topic, "startingOffsets": each({0: 2, 1: 0}, topic)}
    quick = {"kafkaConsumer__pollTimeoutMs": 6000}
    strict = failure(lambda: rows(side.read(**start, **quick)))
    lenient = rows(side.read(**start, **quick, failOnDataLoss="false"))
    assert len(lenient) == 13 + 20
    return strict, lenient


@case
def an_end_past_the_log(side: Side) -> object:
    end = {"subscribe": shared(side), "endingOffsets": each({0: 25, 1: 20, 2: 20})}
    quick = {"kafkaConsumer__pollTimeoutMs": 6000}
    return failure(lambda: rows(side.read(**end, **quick)))


@case
def an_unknown_topic_or_partition(side: Side) -> object:
    unknown: list[dict[str, object]] = [
        {"subscribe": "unknown"},
        {"subscribe": "unknown," + shared(side)},
        {"assign": {"unknown": [0]}},
    ]
    errors = [failure(partial(read, side, given)) for given in unknown]
    known_alone = read(side, {"assign": {shared(side): [0, 7]}})
    assert len(known_alone) == RECORDS
    return errors, known_alone


@case
def offsets_that_do_not_name_every_partition(side: Side) -> object:
    few = {"startingOffsets": each({0: 1})}
    many = {"startingOffsets": each({0: 1, 1: 1, 2: 1, 9: 1})}
    return [
        failure(partial(read, side, {"subscribe": shared(side), **wrong})) for wrong in (few, many)
    ]


@case
def options_that_the_connector_refuses(side: Side) -> object:
    topic = shared(side)
    wrong: list[dict[str, object]] = [
        {},
        {"subscribe": topic, "subscribePattern": "s.*"},
        {"subscribe": topic, "startingOffsets": "latest"},
        {"subscribe": topic, "endingOffsets": "earliest"},
        {"subscribe": topic, "kafka__auto.offset.reset": "latest"},
        {"subscribe": topic, "kafka__enable.auto.commit": "true"},
        {"subscribe": topic, "minPartitions": 0},
    ]
    return [failure(partial(read, side, given)) for given in wrong]


# Streams


@case
def a_stream_in_limited_steps(side: Side) -> object:
    got = side.batches(
        side.checkpoint(),
        subscribe=shared(side),
        startingOffsets="earliest",
        maxOffsetsPerTrigger=17,
        includeHeaders="true",
    )
    sizes = [len(batch) for batch in got]
    assert sum(sizes) == PARTITIONS * RECORDS
    assert max(sizes) <= 17
    return got


@case
def a_stream_goes_on_where_its_checkpoint_says(side: Side) -> object:
    topic, checkpoint = filled(side, "resumed"), side.checkpoint()
    first = side.batches(checkpoint, subscribe=topic, startingOffsets="earliest")
    side.produce(topic, events(first=RECORDS, records=2))
    second = side.batches(checkpoint, subscribe=topic, startingOffsets="earliest")
    assert [len(batch) for batch in first + second] == [60, 6]
    return first, second


@case
def a_stream_from_latest_sees_what_comes(side: Side) -> object:
    topic, seen = filled(side, "from-latest"), "seen_" + side.name
    query = (
        side.stream(subscribe=topic)
        .writeStream.format("memory")
        .queryName(seen)
        .option("checkpointLocation", side.checkpoint())
        .start()
    )
    try:
        query.processAllAvailable()
        side.produce(topic, events(first=RECORDS, records=1))
        query.processAllAvailable()
    finally:
        query.stop()
    got = rows(side.spark.table(seen))
    assert [row[4] for row in got] == [RECORDS] * PARTITIONS
    return got


@case
def a_stream_waits_for_a_minimum(side: Side) -> object:
    topic, checkpoint = filled(side, "minimum", 1), side.checkpoint()
    least = {"minOffsetsPerTrigger": 50, "maxTriggerDelay": "1h"}
    first = side.batches(checkpoint, subscribe=topic, startingOffsets="earliest", **least)
    side.produce(topic, events(1, first=RECORDS, records=10))
    return first, side.batches(checkpoint, subscribe=topic, startingOffsets="earliest", **least)


@case
def a_stream_from_times(side: Side) -> object:
    topic = shared(side)
    by_partition = {"startingOffsetsByTimestamp": each({0: START, 1: START + 19_001, 2: START})}
    past_end = {"startingTimestamp": START + 99_000}
    latest = past_end | {"startingOffsetsByTimestampStrategy": "latest"}
    got = side.batches(side.checkpoint(), subscribe=topic, **by_partition)
    assert len(got[0]) == 20 + 1 + 20
    return (
        got,
        side.batches(side.checkpoint(), subscribe=topic, **latest),
        failure(lambda: side.batches(side.checkpoint(), subscribe=topic, **past_end)),
    )


@case
def partitions_added_to_a_stream_are_read_from_their_start(side: Side) -> object:
    topic, checkpoint = filled(side, "widened", 1), side.checkpoint()
    first = side.batches(checkpoint, subscribe=topic, startingOffsets="latest")
    side.widen(topic, 3)
    side.produce(topic, events(3, first=RECORDS, records=2))
    second = side.batches(checkpoint, subscribe=topic, startingOffsets="latest")
    assert first == []
    assert len(second[0]) == 6
    return second


@case
def a_pattern_finds_topics_made_later(side: Side) -> object:
    filled(side, "found-1", 1)
    checkpoint = side.checkpoint()
    pattern = {"subscribePattern": "found-\\d", "startingOffsets": "earliest"}
    first = side.batches(checkpoint, **pattern)
    filled(side, "found-2", 1)
    second = side.batches(checkpoint, **pattern)
    assert {row[2] for row in second[0]} == {"found-2"}
    return first, second


@case
def retention_in_the_middle_of_a_stream(side: Side) -> object:
    topic = filled(side, "retained", 2)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    quick = options | {"kafkaConsumer__pollTimeoutMs": 6000}
    strict, lenient = side.checkpoint(), side.checkpoint()
    for checkpoint in (strict, lenient):
        side.batches(checkpoint, **quick)
    side.produce(topic, events(2, first=RECORDS, records=10))
    side.delete_records(topic, {0: 25})
    error = failure(lambda: side.batches(strict, **quick))
    rest = side.batches(lenient, **quick, failOnDataLoss="false")
    assert sum(map(len, rest)) >= 5 + 10
    return error, rest


@case
def records_that_expired_before_a_stream_came_to_them(side: Side) -> object:
    """Records two years later are in another segment. One partition, so that the error is fixed."""
    topic, strict, lenient = filled(side, "expired", 1), side.checkpoint(), side.checkpoint()
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    for checkpoint in (strict, lenient):
        side.batches(checkpoint, **options)
    side.produce(topic, events(1, first=RECORDS, records=10))
    side.produce(topic, [Event(partition=0, value=b"late", timestamp=START + 2 * YEAR_MS)] * 3)
    side.expire(topic, START + YEAR_MS, {0: RECORDS + 10})
    error = failure(lambda: side.batches(strict, **options))
    rest = side.batches(lenient, **options, failOnDataLoss="false")
    assert [row[4] for batch in rest for row in batch] == [30, 31, 32]
    return error, rest, rows(side.read(subscribe=topic))


@case
def a_topic_made_anew_under_a_stream(side: Side) -> object:
    topic, checkpoint = filled(side, "anew", 1), side.checkpoint()
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    side.batches(checkpoint, **options)
    side.delete(topic)
    side.create(topic)
    side.produce(topic, events(1, records=3))
    return failure(lambda: side.batches(checkpoint, **options))


@case
def a_topic_gone_from_under_a_stream(side: Side) -> object:
    topic, checkpoint = filled(side, "gone", 1), side.checkpoint()
    filled(side, "gone-not", 1)
    options = {"subscribePattern": "gone.*", "startingOffsets": "earliest"}
    side.batches(checkpoint, **options)
    side.delete(topic)
    strict = failure(lambda: side.batches(checkpoint, **options))
    side.produce("gone-not", events(1, first=RECORDS, records=1))
    lenient = side.batches(checkpoint, **options, failOnDataLoss="false")
    assert len(lenient[0]) == 1
    return strict, lenient


# Writing

OUT = T.StructType(
    [
        T.StructField("key", T.StringType()),
        T.StructField("value", T.StringType()),
        T.StructField("topic", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField(
            "headers",
            T.ArrayType(
                T.StructType(
                    [T.StructField("key", T.StringType()), T.StructField("value", T.BinaryType())]
                )
            ),
        ),
    ]
)
PLACED = [
    (f"k{n}", f"v{n}", ("out-a", "out-b")[n % 2], n % 3, [("h", b"%d" % n), ("h", None)])
    for n in range(30)
]


def written(side: Side, *topics: str) -> list[tuple[object, ...]]:
    """Return the contents of topics, without the times of writing."""
    frame = side.read(subscribe=",".join(topics), includeHeaders="true")
    return rows(frame.select("topic", "partition", "offset", "key", "value", "headers"))


@case
def rows_are_written_where_their_columns_say(side: Side) -> object:
    for topic in ("out-a", "out-b"):
        side.create(topic, 3)
    side.write(side.spark.createDataFrame(PLACED, OUT).coalesce(1))
    got = written(side, "out-a", "out-b")
    assert len(got) == len(PLACED)
    return got


@case
def the_topic_option_wins_over_the_column(side: Side) -> object:
    side.create("out-option", 3)
    side.write(side.spark.createDataFrame(PLACED, OUT).coalesce(1), topic="out-option")
    got = written(side, "out-option")
    assert len(got) == len(PLACED)
    return got


@case
def keys_are_placed_by_the_producer(side: Side) -> object:
    side.create("out-keyed", 5)
    frame = side.spark.range(200).selectExpr("concat('key ', id) key", "cast(id as string) value")
    side.write(frame.coalesce(1), topic="out-keyed", kafka__compression__type="zstd")
    got = written(side, "out-keyed")
    assert len({row[1] for row in got}) == 5
    return got


@case
def null_keys_and_null_values_are_written(side: Side) -> object:
    side.create("out-null")
    nulls: list[tuple[object, ...]] = [
        ("k", None, None, 0, None),
        (None, "v", None, None, []),
        (None, None, None, 0, None),
    ]
    side.write(side.spark.createDataFrame(nulls, OUT).coalesce(1), topic="out-null")
    got = written(side, "out-null")
    assert [row[3:5] for row in got] == [(b"k", None), (None, b"v"), (None, None)]
    return got


@case
def a_missing_topic_is_made_by_writing(side: Side) -> object:
    side.write(side.spark.range(3).selectExpr("cast(id as string) value").coalesce(1), topic="made")
    got = written(side, "made")
    assert len(got) == 3
    return got


@case
def rows_that_cannot_be_written(side: Side) -> object:
    side.create("out-wrong")
    one = side.spark.range(1)
    value = one.selectExpr("'v' value")
    soon = {"topic": "out-wrong", "kafka__max__block__ms": "8000"}
    wrong: list[Callable[[], None]] = [
        lambda: side.write(value),
        lambda: side.write(one.selectExpr("'v' value", "cast(null as string) topic")),
        lambda: side.write(one.selectExpr("'k' key"), topic="out-wrong"),
        lambda: side.write(one.selectExpr("1 value"), topic="out-wrong"),
        lambda: side.write(one.selectExpr("'v' value", "'p' partition"), topic="out-wrong"),
        lambda: side.write(one.selectExpr("'v' value", "7 partition"), **soon),
        lambda: side.write(value, topic="no such name"),
        lambda: side.write(one.selectExpr("repeat('x', 2000000) value"), topic="out-wrong"),
        lambda: side.write(value, topic="out-wrong", kafka__key__serializer="x"),
    ]
    return [failure(action) for action in wrong]


@case
def the_broker_refuses_a_record_over_the_topics_limit(side: Side) -> object:
    topic = side.create("out-limit", max_message_bytes="1000")
    frame = side.spark.range(1).selectExpr("repeat('x', 5000) value")
    return failure(lambda: side.write(frame, topic=topic, kafka__retries="0"))


@case
def acks_and_idempotence_of_every_kind(side: Side) -> object:
    side.create("out-acks")
    frame = side.spark.range(5).selectExpr("cast(id as string) value").coalesce(1)
    for acks, idempotence in (("all", "true"), ("all", "false"), ("1", "false"), ("0", "false")):
        side.write(
            frame, topic="out-acks", kafka__acks=acks, kafka__enable__idempotence=idempotence
        )
    got = written(side, "out-acks")
    assert len(got) == 20
    return got


@case
def a_stream_writes_to_a_topic_and_goes_on(side: Side) -> object:
    source, checkpoint = filled(side, "piped-from", 2), side.checkpoint()
    side.create("piped-to", 2)

    def run() -> None:
        query = (
            side.stream(subscribe=source, startingOffsets="earliest", includeHeaders="true")
            .select("key", "value", "partition", "headers")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", side.bootstrap)
            .option("topic", "piped-to")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(round(seconds(240)))
        finally:
            query.stop()

    run()
    side.produce(source, events(2, first=RECORDS, records=5))
    run()
    got = written(side, "piped-to")
    assert len(got) == 2 * (RECORDS + 5)
    return got
