"""The pure values of the dedup functions, compared with Python sets and dicts; without a JVM."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.dedup import memory as memories
from spark_udfs.dedup.fingerprints import Fingerprints, Indices, Sorted, first_of_each

# Few values, so that ids repeat, and first halves repeat with other second halves.
HALVES = st.sampled_from([0, 1, 2, 64, 2**63, 2**64 - 1])
IDS = st.lists(st.tuples(HALVES, st.integers(0, 3)), max_size=40)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-50, 50)), max_size=20)


def halves(ids: list[tuple[int, int]]) -> Fingerprints:
    return np.array(ids, np.uint64).reshape(-1, 2)


@given(IDS)
def test_first_of_each_is_the_first_index_of_every_distinct_fingerprint(
    ids: list[tuple[int, int]],
) -> None:
    expected = {ids.index(one) for one in ids}
    found = first_of_each(halves(ids))
    assert set(found.tolist()) == expected
    assert len(found) == len(expected)
    assert [ids[at][0] for at in found] == sorted(ids[at][0] for at in found)


@given(IDS, IDS)
def test_contains_compares_all_128_bits(
    known: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    # Sorted by first halves only, with the second ones in any order, like a merged memory.
    by_first = sorted(set(known), key=lambda one: one[0])
    held = halves(by_first)
    found = Sorted(held[:, 0], held[:, 1]).contains(halves(asked))
    assert found.tolist() == [one in known for one in asked]


@given(st.lists(IDS, min_size=1, max_size=5))
def test_a_union_keeps_members_and_order(sets: list[list[tuple[int, int]]]) -> None:
    held = [Sorted.of(halves(sorted(set(ids), key=lambda one: one[0]))) for ids in sets]
    union = Sorted.union(held)
    members = list(zip(union.first.tolist(), union.second.tolist(), strict=True))
    assert sorted(members) == sorted(one for ids in sets for one in set(ids))
    assert union.first.tolist() == sorted(union.first.tolist())


@given(st.lists(IDS, max_size=6))
def test_without_a_horizon_only_the_first_row_of_each_id_is_kept(
    batches: list[list[tuple[int, int]]],
) -> None:
    memory, seen = memories.Memory.blank(), set[tuple[int, int]]()
    for batch in batches:
        kept, memory = claimed(memory, halves(batch), None, None)
        expected = []
        for at, one in enumerate(batch):
            if one not in seen:
                expected.append(at)
                seen.add(one)
        assert kept.tolist() == expected
        assert memory.count() == len(seen)
        memory = memories.decode(memories.encode(memory))


def claimed(
    memory: memories.Memory, ids: Fingerprints, times: memories.Times | None, horizon: int | None
) -> tuple[Indices, memories.Memory]:
    """Return the result of `claim`, and the memory after it."""
    kept, news = memories.claim(memory, ids, times, horizon)
    memory = memories.union([memory, news])
    return kept, memories.forget(memory, memory.newest, horizon)


class Model:
    """The horizon in Python: each id has a time; it is dropped when its slice is past it."""

    def __init__(self, horizon: int) -> None:
        self.horizon, self.width = horizon, max(1, horizon // 8)
        self.newest: int | None = None
        self.times: dict[tuple[int, int], int] = {}

    def claim(self, rows: list[tuple[tuple[int, int], int]]) -> list[int]:
        kept, batch = [], set[tuple[int, int]]()
        for at, (one, _) in enumerate(rows):
            if one not in self.times and one not in batch:
                kept.append(at)
                batch.add(one)
        self.times.update({rows[at][0]: rows[at][1] for at in kept})
        times = [time for _, time in rows]
        self.newest = max(times + ([] if self.newest is None else [self.newest]), default=None)
        for one, time in list(self.times.items()):
            end_of_slice = (time // self.width + 1) * self.width
            if self.newest is not None and end_of_slice <= self.newest - self.horizon:
                del self.times[one]
        return kept


@given(st.lists(ROWS, max_size=6), st.integers(1, 60))
def test_with_a_horizon_memory_answers_as_the_model(
    batches: list[list[tuple[int, int, int]]], horizon: int
) -> None:
    memory, model = memories.Memory.blank(), Model(horizon)
    for batch in batches:
        rows = [((high, low), time) for high, low, time in batch]
        times = np.array([time for _, time in rows], np.int64)
        kept, memory = claimed(memory, halves([one for one, _ in rows]), times, horizon)
        assert kept.tolist() == model.claim(rows)
        assert memory.count() == len(model.times)
        memory = memories.decode(memories.encode(memory))


@given(st.integers(1, 1000), st.integers(0, 10_000), st.integers(0, 3000))
def test_an_id_is_remembered_for_the_horizon_and_an_eighth_more_at_most(
    horizon: int, start: int, age: int
) -> None:
    def at(memory: memories.Memory, one: int, time: int) -> tuple[bool, memories.Memory]:
        kept, memory = claimed(memory, halves([(one, 0)]), np.array([time], np.int64), horizon)
        return len(kept) == 1, memory

    _, memory = at(memories.Memory.blank(), 1, start)
    _, memory = at(memory, 2, start + age)
    new, _ = at(memory, 1, start + age)
    if age <= horizon:
        assert not new
    if age > horizon + max(1, horizon // 8):
        assert new


def test_unknown_time_counts_as_the_newest() -> None:
    _, memory = claimed(memories.Memory.blank(), halves([(1, 1)]), np.array([1000], np.int64), 100)
    unknown = np.array([memories.UNKNOWN], np.int64)
    _, memory = claimed(memory, halves([(2, 2)]), unknown, 100)
    kept, _ = claimed(memory, halves([(2, 2)]), np.array([1090], np.int64), 100)
    assert kept.tolist() == []


@given(st.lists(ROWS, max_size=3), st.integers(1, 9))
def test_parts_of_a_split_belong_to_their_bucket_and_form_the_whole(
    batches: list[list[tuple[int, int, int]]], buckets: int
) -> None:
    memory = remembered(batches)
    parts = memories.split(memory, buckets)
    assert all(part.count() for part in parts.values())
    for bucket, part in parts.items():
        firsts = [
            one for held in part.slices.values() for one in held.first.view(np.int64).tolist()
        ]
        assert {one % buckets for one in firsts} == {bucket}  # like pmod: never negative
    assert members(memories.union([memory, *parts.values()])) == members(memory)
    assert sum(part.count() for part in parts.values()) == memory.count()


def members(memory: memories.Memory) -> set[tuple[int, int, int]]:
    return {
        (number, first, second)
        for number, held in memory.slices.items()
        for first, second in zip(held.first.tolist(), held.second.tolist(), strict=True)
    }


def remembered(batches: list[list[tuple[int, int, int]]]) -> memories.Memory:
    memory = memories.Memory.blank()
    for batch in batches:
        ids = halves([(2**63 + high if low % 2 else high, low) for high, low, _ in batch])
        times = np.array([time for _, _, time in batch], np.int64)
        _, memory = claimed(memory, ids, times, 40)
    return memory


@given(st.lists(ROWS, min_size=1, max_size=3), st.data())
def test_invalid_bytes_of_a_memory_are_rejected(
    batches: list[list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    whole = memories.encode(remembered(batches))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match="memory"):
        memories.decode(whole[:cut])
    with pytest.raises(ValueError, match="memory"):
        memories.decode(whole + b"\0")
