"""The folder of a `dedup_stream`: its owner, and changes of the number of buckets. No Spark."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spark_udfs.dedup import attempts, increments
from spark_udfs.dedup import store as stores
from spark_udfs.dedup.attempts import Note, noted
from spark_udfs.dedup.disk import StoreError, create_empty
from spark_udfs.dedup.fingerprints import Sorted
from spark_udfs.dedup.increments import listed, load, save
from spark_udfs.dedup.memory import Memory
from spark_udfs.dedup.store import Layout, prepare
from tests.spark.dedup.files import (
    Crashed,
    Id,
    Power,
    Query,
    changes,
    count_changes,
    crash_before,
    new_worker,
)
from tests.spark.dedup.test_increments import expected, history, ids_of, replayed

SETTINGS = {"types": ["string"], "horizon_ms": None, "event_time": False}


@pytest.fixture(autouse=True)
def _cold() -> None:
    new_worker()


def test_a_folder_belongs_to_its_settings_and_to_one_query(tmp_path: Path) -> None:
    store = prepare(tmp_path / "ids", SETTINGS, None, 3)
    assert prepare(tmp_path / "ids", SETTINGS, None, 5).layout == store.layout == Layout(1, 3)
    store.open("query", 0, 1)
    store.open("query", 0, 1)
    with pytest.raises(StoreError, match="continue with those"):
        prepare(tmp_path / "ids", {**SETTINGS, "types": ["bigint"]}, None, 3)
    with pytest.raises(StoreError, match="a new checkpoint needs a new folder"):
        store.open("another", 0, 1)
    with pytest.raises(StoreError, match="all executors must see the same folder"):
        replace(store, folder=tmp_path / "elsewhere").open("query", 0, 1)


def test_one_query_has_a_folder_for_each_dedup_stream(tmp_path: Path) -> None:
    first, second = (prepare(tmp_path, SETTINGS, None, 3, "application") for _ in range(2))
    first.open("query", 0, 7)
    with pytest.raises(StoreError, match="each needs its own folder"):
        second.open("query", 0, 7)
    second.open("query", 0, 8)  # the micro-batch again, by a query that was built again


def test_second_dedup_with_the_same_folder_is_rejected_if_their_tasks_start_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (prepare(tmp_path, SETTINGS, None, 3, "application") for _ in range(2))

    def second_begins(path: Path) -> None:
        monkeypatch.undo()
        second.open("query", 0, 7)
        create_empty(path)

    monkeypatch.setattr(attempts, "create_empty", second_begins)
    with pytest.raises(StoreError, match="each needs its own folder"):
        first.open("query", 0, 7)


def test_task_of_a_superseded_attempt_is_rejected(tmp_path: Path) -> None:
    old, store = (prepare(tmp_path, SETTINGS, None, 3, name) for name in ("first", "second"))
    store.open("query", 4, 1)
    second = store.open("query", 4, 2)
    for late in (store, old):  # also one that had written nothing
        with pytest.raises(StoreError, match="was started again"):
            late.open("query", 4, 1)
    assert noted(tmp_path) == [Note(4, second)]
    third = store.open("query", 5, 3)
    with pytest.raises(StoreError, match="remembers micro-batch 5"):
        store.open("query", 4, 2)
    assert noted(tmp_path) == [Note(5, third)]


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("again", [[], ids_of(2), ids_of(1, 2)])
def test_late_task_of_an_earlier_attempt_adds_no_ids(
    tmp_path: Path, again: list[Id], goes_on: bool
) -> None:
    """It checks that no attempt is later than its own, and stops before it renames its file.

    Regression: it replaced the last attempt's file, whose mark differs, and lost its additions.
    """
    late = Query(tmp_path, 1)
    late.run(0, ids_of(0))
    query = copy(late)

    def run_again(name: str, _: tuple[Any, ...]) -> None:
        if name == "replace" and query.execution == late.execution:
            query.start(None)
            query.run_empty_task(1)
            assert query.run(1, again) == list(range(len(again)))
            if goes_on:
                query.run_empty_task(2)

    with changes(run_again):
        late.run(1, ids_of(1, 4))
    assert late.increment(1) if again else late.files()
    rows = ids_of(1, 2, 4)
    new = [at for at, one in enumerate(rows) if one not in again]
    for batch, response in ((3, new), (4, [])):
        new_worker()
        assert query.run(batch, rows) == response


@pytest.mark.parametrize("is_started_again", [False, True])
@pytest.mark.parametrize("deleted", [None, "", "batch-", "0"])
def test_a_crash_while_attempts_are_superseded_leaves_the_last_attempt_the_last(
    tmp_path: Path, is_started_again: bool, deleted: str | None
) -> None:
    """Spark runs the task again, in the same attempt, or the query is restarted.

    After a power cut, only deletions of names that begin with ``deleted`` are kept.
    """
    for number in count():
        query, power = Query(tmp_path / f"{number}", 3), Power()
        query.run(0, ids_of(0))
        query.run(1, ids_of(*range(1, 9)))
        query.again()
        try:
            with changes(power.hear), crash_before(number):
                query.run(1, ids_of(1, 2))
        except Crashed:
            if deleted is not None:
                power.cut(lambda path: path.name.startswith(deleted))
            if is_started_again:
                query.start(None)
            new_worker()
            query.run(1, ids_of(1, 2))
        else:
            break
        new_worker()
        assert query.run(2, ids_of(*range(9))) == list(range(3, 9))
    assert number > 10


@pytest.mark.parametrize("is_started_again", [False, True])
@pytest.mark.parametrize("again", [[], ids_of(2)])
def test_ids_that_a_failed_attempt_added_to_another_bucket_are_forgotten(
    tmp_path: Path, is_started_again: bool, again: list[Id]
) -> None:
    """The replay has no rows in that bucket, or in any: Spark calls the function for empty ones."""
    query = Query(tmp_path, 1)
    query.run(0, ids_of(1))
    query.start(None)
    query.run_empty_task(0)
    if again:
        query.run(0, again)
    if is_started_again:
        query.start(3)
        new_worker()
    assert query.run(1, [*ids_of(1), *again]) == [0]
    assert query.run(2, [*ids_of(1), *again]) == []


def test_folder_of_an_earlier_version_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"buckets": 3, "ids": ["id"]}')
    with pytest.raises(StoreError, match="another version of dedup_stream"):
        prepare(tmp_path, SETTINGS, None, 3)


def test_folder_without_its_memories_is_rejected(tmp_path: Path) -> None:
    query = Query(tmp_path, 2)
    query.run(0, ids_of(*range(9)))
    bucket = query.store.bucket(1)
    bucket.rename(tmp_path / "put away")
    new_worker()
    with pytest.raises(StoreError, match="bucket-0001 is gone"):
        query.run(1, ids_of(*range(9)))
    (tmp_path / query.store.layout.name()).rename(tmp_path / "away too")
    with pytest.raises(StoreError, match="no longer contains the ids"):
        query.start(None)


def test_task_with_another_number_of_buckets_is_rejected(tmp_path: Path) -> None:
    query = Query(tmp_path, 2)
    query.run(0, ids_of(1))
    Query(tmp_path, 3)
    with pytest.raises(StoreError, match="only one dedup_stream may use it"):
        query.run(1, ids_of(1))


def test_no_task_of_a_running_query_adds_ids_during_a_split(tmp_path: Path) -> None:
    query = Query(tmp_path, 2)
    query.run(0, ids_of(*range(9)))
    bucket, refused = query.store.bucket(0), []
    known = load(bucket, 1, None, None)
    news = Memory(known.memory.newest, {0: Sorted.of(np.array([(2, 2)], np.uint64))})

    def late_task(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "mkdir" and "new-layout" in str(arguments[0]):
            with pytest.raises(FileNotFoundError):
                save(bucket, 1, query.attempt(), known, news, None)
            refused.append(arguments[0])

    with changes(late_task):
        query.start(3)
    assert len(refused) == 4  # the layout and its three buckets


@pytest.mark.parametrize("split_bytes_max", [2**29, 300])
def test_changed_number_of_buckets_keeps_all_ids_and_the_results_of_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes_max: int
) -> None:
    monkeypatch.setattr(stores, "SPLIT_BYTES_MAX", split_bytes_max)
    batches = history(1, 12, size=20)
    responses = expected(batches)
    query = Query(tmp_path, 4)
    for batch, (ids, response) in enumerate(zip(batches, responses, strict=True)):
        assert query.run(batch, ids) == response
        query.start((4, 7, 2, 7)[batch % 4])
        assert query.run(batch, ids) == response
    assert query.buckets == 7
    assert len(list(tmp_path.glob("layout-*"))) == 1
    remembered = sum(load(query.store.bucket(at), 99, None, None).memory.count() for at in range(7))
    assert remembered == len({one for ids in batches for one in ids})


def test_replay_after_a_change_of_the_number_of_buckets_writes_the_same_files(
    tmp_path: Path,
) -> None:
    batches = history(2, 3, size=30)
    query = Query(tmp_path, 3)
    replayed(query, batches, expected(batches), 0)
    query.start(5)

    def content() -> dict[str, bytes]:
        """Return the contents by file name without the attempt."""
        buckets = [query.store.bucket(number) for number in range(5)]
        files = [bucket / span.name() for bucket in buckets for span in listed(bucket)]
        return {str(path).partition(".")[0]: path.read_bytes() for path in files}

    before = content()
    query.run(2, batches[2])
    assert content() == before
    assert len(before) == 10


def test_number_of_buckets_can_change_before_anything_is_remembered(tmp_path: Path) -> None:
    query = Query(tmp_path, 3)
    query.start(2)
    assert query.run(0, ids_of(1, 2)) == [0, 1]
    query.start(4)  # micro-batch 0 may be run again
    assert query.run(0, ids_of(1, 2)) == [0, 1]
    assert query.run(1, ids_of(1, 2)) == []


@pytest.mark.parametrize("horizon_ms", [80, 1])
def test_number_of_buckets_changes_no_result_of_a_replay_with_a_horizon(
    tmp_path: Path, horizon_ms: int
) -> None:
    """Each bucket has its own newest time, so one may have dropped an id that another has."""
    batches, query = history(7, 20, size=12), Query(tmp_path, 4, horizon_ms=horizon_ms)
    for batch, ids in enumerate(batches):
        times = [20 * batch - 7 * (at % 5) + 100 for at in range(len(ids))]
        response = query.run(batch, ids, times)
        query.start((3, 1, 4, 6)[batch % 4])
        new_worker()
        assert query.run(batch, ids, times) == response


def test_ids_are_remembered_over_a_horizon_and_changes_of_the_number_of_buckets(
    tmp_path: Path,
) -> None:
    query = Query(tmp_path, 4, horizon_ms=800)
    for batch in range(30):
        ids = ids_of(*range(3 * batch, 3 * batch + 3), *range(max(0, 3 * batch - 9), 3 * batch))
        new = query.run(batch, ids, [100 * batch + 5000] * len(ids))
        assert new == [0, 1, 2]
        query.start((3, 1, 4, 6)[batch % 4])


def test_a_crash_while_the_number_of_buckets_changes_loses_nothing(tmp_path: Path) -> None:
    batches = history(6, 4)
    responses = expected(batches)

    def begun(folder: Path) -> Query:
        query = Query(folder, 3)
        replayed(query, batches[:3], responses, 0)
        return query

    query = begun(tmp_path / "whole")
    total = count_changes(lambda: query.start(2))
    assert total > 10
    for number in range(total):
        query = begun(tmp_path / str(number))
        with crash_before(number), pytest.raises(Crashed):
            query.start(2)
        query.start((None, 2, 3, 5)[number % 4])
        replayed(query, batches, responses, 2)
        names = [path.name for path in (tmp_path / str(number)).iterdir() if "layout" in path.name]
        assert names == [query.store.layout.name()]


def test_only_the_last_attempt_of_the_newest_micro_batch_has_a_note(tmp_path: Path) -> None:
    query = Query(tmp_path, 2)
    for batch in (0, 1, 4, 5):
        for _ in range(5):
            query.run(batch, ids_of(batch))
            assert noted(tmp_path) == [Note(batch, query.attempt())]
            query.again()


def test_files_of_superseded_attempts_do_not_accumulate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "RUN", 2)
    query = Query(tmp_path, 1)
    for batch in range(30):
        for _ in range(3):
            query.again()
            query.run(batch, ids_of(batch))
    assert [name for name in query.files() if "supersedes" in name] == []
    for batch in (30, 31):
        for _ in range(3):
            query.again()
            query.run_empty_task(batch)
    assert len([name for name in query.files() if "supersedes" in name]) == 2


def test_half_written_files_of_killed_processes_are_deleted_at_the_next_start(
    tmp_path: Path,
) -> None:
    left = 0
    for number in range(12):
        folder = tmp_path / f"{number}"
        with suppress(Crashed), crash_before(number):
            Query(folder, 1).run(0, ids_of(1))
        left += len(list(folder.glob(".*")))
        query = Query(folder, 1)
        query.run(0, ids_of(1))
        query.start(None)
        assert list(folder.glob(".*")) == []
    assert left > 1


def test_task_whose_half_written_file_was_deleted_uses_the_file_of_another_task(
    tmp_path: Path,
) -> None:
    query, links = Query(tmp_path, 1), count()

    def other_task(name: str, _: tuple[Any, ...]) -> None:
        if name == "link" and next(links) == 0:
            query.run_empty_task(0)
            prepare(
                tmp_path, {"types": ["string"], "horizon_ms": None, "event_time": True}, None, 1
            )
            assert list(tmp_path.glob(".query-*")) == []

    with changes(other_task):
        assert query.run(0, ids_of(1)) == [0]
    assert next(links) == 2


def test_layouts_sort_in_the_order_of_their_creation() -> None:
    layouts = [Layout(number, 16) for number in (9, 10, 9_999, 10_000)]
    assert all(one < other for one, other in pairwise(layouts))
    assert layouts[-1].name() == "layout-10000-0016"
