"""Files of micro-batches in a folder, compared with a set, over replays, crashes and power cuts."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from spark_udfs.dedup import disk, increments
from spark_udfs.dedup.disk import StoreError
from spark_udfs.dedup.increments import Span, listed
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

DAY = 86_400_000


@pytest.fixture(autouse=True)
def _cold() -> None:
    new_worker()


def ids_of(*numbers: int) -> list[Id]:
    """Return ids of these numbers, in buckets that do not depend on the order of the numbers."""
    return [(hash((number, 1)), number) for number in numbers]


def history(seed: int, batches: int, size: int = 6) -> list[list[Id]]:
    choose = random.Random(seed)
    return [
        ids_of(*(choose.randrange(4 * size + at * size) for _ in range(size)))
        for at in range(batches)
    ]


def expected(batches: list[list[Id]]) -> list[list[int]]:
    """The model: return which rows of each batch are new."""
    seen: set[Id] = set()
    responses = []
    for ids in batches:
        new = []
        for at, one in enumerate(ids):
            if one not in seen:
                new.append(at)
            seen.add(one)
        responses.append(new)
    return responses


def test_repeated_micro_batch_gives_the_same_rows(tmp_path: Path) -> None:
    query = Query(tmp_path, 1)
    first, second = ids_of(1, 2, 2), ids_of(2, 3)
    for _ in range(2):
        assert query.run(0, first) == [0, 1]
    content = query.increment(0).read_bytes()
    for _ in range(2):
        assert query.run(5, second) == [
            1
        ]  # micro-batches without rows of this bucket write no file
        new_worker()
    assert query.run(6, first + second) == []
    added = [Span.of(batch, query.attempt()).name() for batch in (0, 5)]
    assert query.files() == added  # no new ids, so no file
    assert query.increment(0).read_bytes() == content


def test_id_that_a_replay_does_not_add_again_is_forgotten(tmp_path: Path) -> None:
    query = Query(tmp_path, 1)
    query.run(0, ids_of(1))
    query.run(1, ids_of(2, 3))
    assert query.run(1, ids_of(1)) == []  # the source returned other rows this time
    assert query.run(2, ids_of(2)) == [0]


def written_by(query: Query, batches: list[list[Id]], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the bytes written into the folder in these micro-batches, including merges."""
    sizes: list[int] = []
    write = disk.write

    def counted(path: Path, data: bytes, prefix: str) -> None:
        sizes.append(len(data))
        write(path, data, prefix)

    monkeypatch.setattr(increments, "write", counted)
    for batch, ids in enumerate(batches):
        query.run(batch, ids)
    return sum(sizes)


@pytest.mark.parametrize(("batches", "files_max"), [(300, 42), (1_000, 66)])
def test_id_costs_at_most_40_written_bytes_and_files_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int, files_max: int
) -> None:
    query = Query(tmp_path, 1)
    size = 20
    rows = [ids_of(*range(batch * size, (batch + 1) * size)) for batch in range(batches)]
    written = written_by(query, rows, monkeypatch)
    assert written <= 40 * batches * size
    assert len(query.files()) <= files_max
    folder = query.store.bucket(0)
    on_disk = sum(path.stat().st_size for path in folder.iterdir())
    assert on_disk <= 20 * batches * size
    new_worker()
    assert increments.load(folder, batches, None, None).memory.count() == batches * size


def test_no_file_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(increments, "RUN", 3)
    query = Query(tmp_path, 2)
    identities: dict[str, tuple[int, int]] = {}
    for batch, ids in enumerate(history(1, 20)):
        query.run(batch, ids)
        for bucket in range(2):
            for path in query.store.bucket(bucket).iterdir():
                stat = path.stat()
                identity = stat.st_ino, stat.st_mtime_ns
                assert identities.setdefault(str(path), identity) == identity


@pytest.mark.parametrize("seed", range(3))
def test_merged_files_replace_only_old_increments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(increments, "RUN", 3)
    query, batches = Query(tmp_path, 1), history(seed, 30)
    for batch, (ids, new) in enumerate(zip(batches, expected(batches), strict=True)):
        newest = listed(query.store.bucket(0))[-1:]
        assert query.run(batch, ids) == new
        spans = listed(query.store.bucket(0))
        assert [span for span in newest if span not in spans] == []
        assert spans[-1].last == batch or not new
        assert [span for span in spans[-2:] if span.first != span.last] == []
    merged = [span for span in spans if span.first != span.last]
    assert 3 <= len(merged) <= 7
    assert [span.last for span in spans] == sorted({span.last for span in spans})


def test_worker_reads_only_files_that_it_has_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = increments._read_file

    def counted(path: Path) -> Any:
        reads.append(path.name[:20])
        return read(path)

    monkeypatch.setattr(increments, "_read_file", counted)
    query, batches = Query(tmp_path, 1), history(0, 5)
    for batch, ids in enumerate(batches[:4]):
        query.run(batch, ids)
    assert reads == [f"{batch:020}" for batch in range(3)]
    reads.clear()
    new_worker()
    query.run(4, batches[4])
    assert reads == [f"{batch:020}" for batch in range(4)]


def test_the_cache_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(increments, "CACHE_BYTES_MAX", 16 * 10)
    query, batches = Query(tmp_path, 4), history(0, 20)
    for batch, (ids, new) in enumerate(zip(batches, expected(batches), strict=True)):
        assert query.run(batch, ids) == new
        assert len(increments._CACHE) == 1 or increments._cached_bytes() <= 160


def test_replaced_files_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    query = Query(tmp_path, 1)
    query.run(0, ids_of(1))
    query.run(1, ids_of(2))
    assert query.run(2, ids_of(1, 2)) == []  # 0 and 1 are cached
    other = Query(tmp_path / "other", 1)
    other.run(0, ids_of(3))
    other.run(1, ids_of(4))
    for batch in (0, 1):
        other.increment(batch).replace(query.increment(batch))
    assert query.run(2, ids_of(1, 4)) == [0]


def test_checkpoint_older_than_the_folder_is_rejected(tmp_path: Path) -> None:
    query, batches = Query(tmp_path, 1), history(0, 4)
    for batch, ids in enumerate(batches):
        query.run(batch, ids)
    query.run(3, batches[3])
    with pytest.raises(StoreError, match="remembers micro-batch 3, and this is 2"):
        query.run(2, batches[2])
    for note in tmp_path.glob("batch-*"):
        note.unlink()
    with pytest.raises(StoreError, match="remembers micro-batch 3, and this is 2"):
        query.run(2, batches[2])


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_missing_file_among_others_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: int, merge: bool
) -> None:
    query = Query(tmp_path, 1)
    for batch in range(5):
        query.run(batch, ids_of(batch))
    query.increment(gone).unlink()
    if merge:  # this worker has the file cached, but a merge would hide its loss
        monkeypatch.setattr(increments, "RUN", 2)
    else:
        new_worker()
    with pytest.raises(StoreError, match="does not continue the files before it"):  # noqa: PT012
        query.run(5, ids_of(5))
        new_worker()
        query.run(6, ids_of(6))


def test_damaged_file_is_rejected(tmp_path: Path) -> None:
    query = Query(tmp_path, 1)
    query.run(0, ids_of(1))
    path = query.increment(0)
    whole = path.read_bytes()
    for damaged, complaint in [
        (whole[:3], "ends inside its head"),
        (b"x" + whole[1:], "not a memory of version 3"),
        (whole[:4] + b"\1" + whole[5:], "not a memory of version 3"),
        (whole[:-1], "is damaged"),
        (whole[:-1] + b"z", "is damaged"),
    ]:
        path.write_bytes(damaged)
        new_worker()
        with pytest.raises(StoreError, match=complaint):
            query.run(1, ids_of(2))


def replayed(query: Query, batches: list[list[Id]], responses: list[list[int]], begin: int) -> None:
    for batch in range(begin, len(batches)):
        assert query.run(batch, batches[batch]) == responses[batch]


@pytest.mark.parametrize("worker_dies", [False, True])
def test_a_crash_between_any_two_changes_of_the_folder_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker_dies: bool
) -> None:
    monkeypatch.setattr(increments, "RUN", 2)
    batches = history(3, 8)
    responses = expected(batches)
    total = count_changes(lambda: replayed(Query(tmp_path / "whole", 2), batches, responses, 0))
    assert total > 100
    for number in range(total):
        folder, done = tmp_path / str(number), 0
        new_worker()
        with pytest.raises(Crashed), crash_before(number):  # noqa: PT012
            query = Query(folder, 2)
            for batch, ids in enumerate(batches):
                assert query.run(batch, ids) == responses[batch]
                done = batch + 1
        if worker_dies:
            new_worker()
        query = Query(folder, 2)
        replayed(query, batches, responses, done)
        left = [
            path.name for path in folder.rglob(".*") if path.name.startswith((".layout", ".0-"))
        ]
        assert left == []


@pytest.mark.parametrize("keep_unlinked", [False, True])
def test_a_power_cut_between_any_two_changes_of_the_folder_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_unlinked: bool
) -> None:
    monkeypatch.setattr(increments, "RUN", 2)
    batches = history(4, 8)
    responses = expected(batches)

    def begun(folder: Path) -> Query:
        query = Query(folder, 1)
        replayed(query, batches[:2], responses, 0)
        return query

    query = begun(tmp_path / "whole")
    total = count_changes(lambda: replayed(query, batches, responses, 2))
    for number in range(total):
        new_worker()
        query, power, done = begun(tmp_path / str(number)), Power(), 2
        with changes(power.hear), crash_before(number), pytest.raises(Crashed):  # noqa: PT012
            for batch in range(2, len(batches)):
                assert query.run(batch, batches[batch]) == responses[batch]
                done = batch + 1
        power.cut(lambda _: keep_unlinked)
        new_worker()
        replayed(query, batches, responses, done)


def test_concurrent_attempts_do_not_harm_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second attempt of a task runs completely before one of the first one's changes."""
    monkeypatch.setattr(increments, "RUN", 2)
    batches = history(5, 8)
    responses = expected(batches)
    for at in range(12):
        new_worker()
        query = Query(tmp_path / str(at), 1)
        for batch, ids in enumerate(batches):
            with changes(_second_attempt(at, query, batch, ids, responses[batch])):
                assert query.run(batch, ids) == responses[batch]
        new_worker()
        assert query.run(len(batches), [one for ids in batches for one in ids]) == []


def _second_attempt(
    at: int, query: Query, batch: int, ids: list[Id], response: list[int]
) -> Callable[[str, tuple[Any, ...]], None]:
    numbers = count()

    def before_change(_: str, __: tuple[Any, ...]) -> None:
        if next(numbers) == at:  # changes of this attempt have later numbers
            assert query.run(batch, ids) == response

    return before_change


def test_with_a_horizon_files_are_deleted_once_all_their_ids_are_past_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "RUN", 4)
    query = Query(tmp_path, 1, horizon_ms=8 * DAY)
    for day in range(100):
        times = [(1_000 + day) * DAY] * 2
        assert query.run(day, ids_of(day, day - 5), times) == ([0] if day >= 5 else [0, 1])
    folder = query.store.bucket(0)
    spans = listed(folder)
    assert spans[0].first == 0  # empty: it connects the chain
    assert len(spans) < 16
    assert sum((folder / span.name()).stat().st_size for span in spans) < 16 * (
        120 + 9 * len(spans)
    )
    new_worker()
    assert query.run(100, ids_of(99, 93, 80), [1_099 * DAY] * 3) == [2]


@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), min_size=1, max_size=6),
        max_size=9,
    ),
    horizon=st.integers(1, 40),
    warm=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_merging_and_caching_change_no_answer_with_a_horizon(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[int, int]]],
    horizon: int,
    warm: list[bool],
) -> None:
    folder = tmp_path_factory.mktemp("queries")
    with pytest.MonkeyPatch.context() as patch:
        queries = [Query(folder / name, 1, horizon_ms=horizon) for name in ("merging", "plain")]
        for batch, rows in enumerate(batches):
            ids, times = ids_of(*(number for number, _ in rows)), [time for _, time in rows]
            responses = []
            for query, run in zip(queries, (1, 99), strict=True):
                patch.setattr(increments, "RUN", run)
                if run == 99 or not warm[batch]:
                    new_worker()
                responses.append(query.run(batch, ids, times))
                if warm[batch]:
                    assert query.run(batch, ids, times) == responses[-1]
            assert responses[0] == responses[1]


class Folder(RuleBasedStateMachine):
    """Random micro-batches, replays, crashes, restarts and bucket numbers, by two workers."""

    @initialize(factory=st.just(None), buckets=st.integers(1, 5))
    def start(self, factory: None, buckets: int) -> None:
        import tempfile

        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(increments, "RUN", 2)
        self.temporary = tempfile.TemporaryDirectory()
        self.query = Query(Path(self.temporary.name) / "ids", buckets)
        self.workers: list[dict[Any, Any]] = [{}, {}]
        self.batch, self.rows, self.respond = -1, list[Id](), list[int]()
        self.seen: set[Id] = set()

    @rule(numbers=st.lists(st.integers(0, 40), max_size=8), worker=st.integers(0, 1))
    def run_batch(self, numbers: list[int], worker: int) -> None:
        self.replay(worker)  # Spark starts a micro-batch only after the last one is done
        self.seen.update(self.rows)
        self.batch, self.rows = self.batch + 1, ids_of(*numbers)
        fresh = [one for one in self.rows if one not in self.seen]
        self.respond = sorted({self.rows.index(one) for one in fresh})
        self.replay(worker)

    @rule(worker=st.integers(0, 1))
    def replay(self, worker: int) -> None:
        if self.batch >= 0:
            self.patch.setattr(increments, "_CACHE", self.workers[worker])
            assert self.query.run(self.batch, self.rows) == self.respond

    @rule(
        numbers=st.lists(st.integers(0, 40), max_size=8),
        at=st.integers(0, 30),
        worker=st.integers(0, 1),
    )
    def crash_in_a_batch(self, numbers: list[int], at: int, worker: int) -> None:
        try:
            with crash_before(at):
                self.run_batch(numbers, worker)
        except Crashed:
            self.workers[worker].clear()

    @rule(
        numbers=st.lists(st.integers(0, 40), max_size=8),
        others=st.lists(st.integers(0, 40), max_size=8),
        at=st.integers(0, 12),
        buckets=st.none() | st.integers(1, 7),
        worker=st.integers(0, 1),
    )
    def run_again_beside_a_late_task(
        self, numbers: list[int], others: list[int], at: int, buckets: int | None, worker: int
    ) -> None:
        """Run a later attempt, with other rows, before a change of an earlier one."""
        if self.batch < 0:
            return
        self.query.start(None)
        late, changed = copy(self.query), count()
        self.rows = ids_of(*numbers)
        fresh = [one for one in self.rows if one not in self.seen]
        self.respond = sorted({self.rows.index(one) for one in fresh})

        def begin_later(_: str = "", __: tuple[Any, ...] = ()) -> None:
            if next(changed) == at:
                self.query.start(buckets)
                self.query.run_empty_task(self.batch)
                self.replay(1 - worker)
                self.patch.setattr(increments, "_CACHE", self.workers[worker])

        self.patch.setattr(increments, "_CACHE", self.workers[worker])
        with changes(begin_later), suppress(StoreError, FileNotFoundError):
            late.run(self.batch, ids_of(*others))
        while late.execution == self.query.execution:
            begin_later()

    @rule(buckets=st.none() | st.integers(1, 7))
    def restart(self, buckets: int | None) -> None:
        self.query.start(buckets)

    @rule(buckets=st.integers(1, 7), at=st.integers(0, 60))
    def crash_in_a_restart(self, buckets: int, at: int) -> None:
        try:
            with crash_before(at):
                self.query.start(buckets)
        except Crashed:
            self.query.start(None)

    @invariant()
    def nothing_is_in_two_files(self) -> None:
        for bucket in range(self.query.buckets):
            spans = listed(self.query.store.bucket(bucket))
            assert all(one.last < other.first for one, other in pairwise(spans))

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()
            self.temporary.cleanup()


TestFolder = pytest.mark.campaign(Folder.TestCase)


@pytest.mark.parametrize("cold", [False, True])
def test_ids_are_remembered_again_after_a_clock_was_ahead_for_one_micro_batch(
    tmp_path: Path, cold: bool
) -> None:
    """Its time stays in a file. Later micro-batches deduplicate with the right time again."""
    hour, now = 3_600_000, time.time_ns() // 1_000_000
    query = Query(tmp_path / "store", 1, hour)
    query.run(0, [(1, 1)], [now])
    query.run(1, [(2, 2)], [now + 1_000 * hour])
    query.now_ms = now
    for batch in range(2, 6):
        if cold:
            new_worker()
        assert query.run(batch, [(3, 3)], [now + batch]) == ([0] if batch == 2 else [])
    query.start(3)
    assert query.run(6, [(3, 3)], [now + 6]) == []
