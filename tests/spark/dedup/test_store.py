"""Ids remembered in a folder: the files by themselves, and `dedup_stream` on top of them."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException

from spark_udfs import dedup_stream
from spark_udfs.dedup.choice import choose
from spark_udfs.dedup.store import Store, StoreError
from spark_udfs.dedup.stream import _keep
from tests.spark.streams import (
    Operator,
    Stream,
    check_replay,
    first_of_each,
    random_batches,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "ids")
    made.prepare({"ids": ["id"]})
    made.open("query")
    return made


@pytest.fixture
def stream(spark: "SparkSession", tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def stored(stream: Stream, ids: Any = "id", **settings: Any) -> Operator:
    return lambda df: dedup_stream(df, ids, store=stream.folder / "ids", **settings)


def names(store: Store, bucket: int) -> list[str]:
    return sorted(path.name for path in (store.folder / f"bucket-{bucket:04}").iterdir())


def test_a_micro_batch_reads_what_was_before_it_however_often_it_runs(store: Store) -> None:
    assert store.load(3, 0) is None
    store.save(3, 0, b"zero")
    assert store.load(3, 0) is None  # run again, it remembers what it did at first
    store.save(3, 0, b"zero")
    assert store.load(3, 5) == b"zero"  # micro-batches without rows of this bucket leave no file
    store.save(3, 5, b"five")
    assert store.load(3, 5) == b"zero"
    assert store.load(3, 6) == b"five"
    assert store.load(4, 6) is None


def test_the_two_newest_files_are_kept_and_no_remains_of_dead_tasks(store: Store) -> None:
    for batch in range(4):
        store.save(0, batch, b"%d" % batch)
        (store.folder / "bucket-0000" / f".{batch}-dead").touch()
    assert names(store, 0) == [".3-dead", f"{2:020}", f"{3:020}"]


def test_a_checkpoint_older_than_the_folder_is_refused(store: Store) -> None:
    for batch in range(4):
        store.save(0, batch, b"")
    assert store.load(0, 3) == b""
    with pytest.raises(StoreError, match="before micro-batch 2"):
        store.load(0, 2)


def test_what_is_damaged_is_refused(store: Store) -> None:
    store.save(0, 0, b"memory")
    path = store.folder / "bucket-0000" / f"{0:020}"
    whole = path.read_bytes()
    for damaged, complaint in [
        (whole[:3], "ends inside its head"),
        (b"x" + whole[1:], "no memory of version 1"),
        (whole[:-1], "is damaged"),
        (whole[:-1] + b"z", "is damaged"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=complaint):
            store.load(0, 1)


def test_a_folder_belongs_to_its_settings_and_to_one_query(store: Store) -> None:
    store.prepare({"ids": ["id"]})
    store.open("query")
    with pytest.raises(StoreError, match="go on with those"):
        store.prepare({"ids": ["key"]})
    with pytest.raises(StoreError, match="a new checkpoint needs a new folder"):
        store.open("another")
    with pytest.raises(StoreError, match="all executors must see the same folder"):
        Store(store.folder / "elsewhere").open("query")


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.none() | st.sampled_from("abcd")), max_size=20),
    cut=st.integers(0, 20),
)
def test_the_first_of_the_input_wins_in_whatever_order_sources_come(
    rows: list[tuple[int, str | None]], cut: int
) -> None:
    shuffled = rows[cut:] + rows[:cut]
    pieces = [shuffled[: len(rows) // 2], shuffled[len(rows) // 2 :]]
    digests = [
        pa.array([None if one is None else bytes([ord(one)] * 16) for _, one in piece], pa.binary(16))
        for piece in pieces
    ]  # fmt: skip
    sources = [np.array([source for source, _ in piece], np.int64) for piece in pieces]
    masks, _ = choose(_keep(None), None, digests, None, 0, sources)
    found = [row for row, keep in zip(shuffled, np.concatenate(masks), strict=True) if keep]

    seen: set[str | None] = set()
    expected = []
    for source, one in sorted(shuffled, key=lambda row: row[0]):
        if one is None or one not in seen:
            expected.append((source, one))
        seen.add(one)
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("ids", "columns", "buckets"), [("id", [1], None), (["id", "part"], [1, 2], 1), ("part", [2], 3)]
)  # fmt: skip
def test_stream_with_a_store_keeps_the_first_row_of_each_id_over_a_restart(
    stream: Stream, ids: Any, columns: list[int], buckets: int | None
) -> None:
    batches = random_batches(len(columns), 0, 30, 0, 20, 30)
    stream.add(*batches[:4])
    stream.run(stored(stream, ids, buckets=buckets))
    stream.add(batches[4])
    stream.run(stored(stream, ids, buckets=buckets))
    assert stream.numbers() == first_of_each(batches, columns)


def test_replayed_batches_give_what_they_gave_at_first(stream: Stream) -> None:
    check_replay(stream, stored(stream))


def test_buckets_run_in_one_task_keep_their_memories_apart(stream: Stream) -> None:
    def operator(df: "DataFrame") -> "DataFrame":
        return stored(stream, buckets=4)(df).coalesce(1)

    choose_id, batches = random.Random(1), []
    for start in (0, 30, 60):
        ids = [(f"id {choose_id.randrange(40)}", 0) for _ in range(30)]
        batches.append(rows_of(start, ids))
    stream.add(*batches)
    stream.run(operator)
    assert stream.numbers() == first_of_each(batches, [1])


def test_a_folder_that_does_not_tell_types_is_gone_on_with(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 0)]))
    stream.run(stored(stream))
    kept = stream.folder / "ids" / "settings.json"
    of_old = json.loads(kept.read_text())
    del of_old["types"]
    kept.write_text(json.dumps(of_old, sort_keys=True))
    stream.add(rows_of(1, [("a", 0), ("b", 0)]))
    stream.run(stored(stream))
    assert stream.numbers() == [0, 2]


def test_a_new_checkpoint_with_an_old_folder_fails_the_query(stream: Stream) -> None:
    stream.add(rows_of(0, [("a", 0)]))
    stream.run(stored(stream))
    (stream.folder / "checkpoint").rename(stream.folder / "put away")
    with pytest.raises(StreamingQueryException, match="a new checkpoint needs a new folder"):
        stream.run(stored(stream))
    with pytest.raises(StoreError, match="go on with those"):
        stream.run(stored(stream, buckets=7))
    assert stream.numbers() == [0]
