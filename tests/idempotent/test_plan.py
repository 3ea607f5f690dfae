"""The pure rules: which records are not redelivered, the next marks, and which ids are new."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.errors import DataLossError
from pykafka_core.idempotent.deduplication import (
    Deduplicated,
    Gap,
    first_of_each,
    plan,
    starting_marks,
)
from pykafka_core.idempotent.ledger import PartitionKey

A = PartitionKey(b"\1" * 16, "a", 0)
B = PartitionKey(b"\1" * 16, "a", 1)


def test_records_below_the_mark_were_processed() -> None:
    batch = [(A, 3), (A, 4), (B, 0), (A, 5)]
    assert plan({A: 5, B: 0}, batch) == Deduplicated([2, 3], {A: 6, B: 1}, [])


def test_redelivered_batch_is_fresh_once() -> None:
    batch = [(A, 0), (A, 1), (A, 0), (A, 1), (A, 2)]
    assert plan({A: 0}, batch) == Deduplicated([0, 1, 4], {A: 3}, [])


def test_gaps_before_and_within_the_batch_are_reported() -> None:
    batch = [(A, 2), (A, 3), (A, 7)]
    assert plan({A: 1}, batch) == Deduplicated([0, 1, 2], {A: 8}, [Gap(A, 1, 2), Gap(A, 4, 7)])


def test_marks_do_not_move_without_fresh_records() -> None:
    assert plan({A: 9}, [(A, 8)]) == Deduplicated([], {}, [])


deliveries = st.lists(
    st.tuples(st.sampled_from([A, B]), st.integers(0, 20), st.integers(1, 8)), max_size=12
)


@given(deliveries, st.lists(st.integers(0, 40), max_size=10))
def test_any_redelivery_cut_into_any_batches_is_processed_once_in_order(
    deliveries: list[tuple[PartitionKey, int, int]], cuts: list[int]
) -> None:
    """The source repeats records any number of times, but never skips any."""
    stream: list[tuple[PartitionKey, int]] = []
    ends = {A: 0, B: 0}
    for key, back, count in deliveries:
        start = max(ends[key] - back, 0)
        stream += [(key, offset) for offset in range(start, start + count)]
        ends[key] = max(ends[key], start + count)
    marks = {A: 0, B: 0}
    processed: list[tuple[PartitionKey, int]] = []
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        batch = stream[start:end]
        step = plan(marks, batch)
        assert step.gaps == []
        processed += [batch[index] for index in step.fresh]
        marks |= step.marks
    for key in (A, B):
        assert [offset for k, offset in processed if k == key] == list(range(ends[key]))
    assert marks == ends


@given(st.lists(st.binary(min_size=1, max_size=1)), st.sets(st.binary(min_size=1, max_size=1)))
def test_the_first_of_each_new_id_is_marked(ids: list[bytes], seen: set[bytes]) -> None:
    mask = first_of_each(ids, set(ids) - seen)
    assert mask == [value not in seen and value not in ids[:i] for i, value in enumerate(ids)]


NEW = PartitionKey(b"\2" * 16, "a", 0)
OTHER = PartitionKey(b"\3" * 16, "b", 0)


@pytest.mark.parametrize(
    ("marks", "watermarks", "start", "expected"),
    [
        ({}, {A: (3, 9)}, "earliest", {A: 3}),
        ({}, {A: (3, 9)}, "latest", {A: 9}),
        ({A: 5}, {A: (3, 9)}, "latest", {A: 5}),
        ({A: 9}, {A: (3, 9)}, "earliest", {A: 9}),
        ({A: 5}, {A: (3, 9), B: (2, 8)}, "latest", {A: 5, B: 2}),
        ({A: 5}, {NEW: (0, 4)}, "latest", {NEW: 0}),
        ({A: 5}, {A: (3, 9), OTHER: (0, 4)}, "latest", {A: 5, OTHER: 4}),
    ],
)
def test_reading_starts_at_the_mark_or_where_no_record_is_skipped(
    marks: Any, watermarks: Any, start: Any, expected: Any
) -> None:
    found = starting_marks(marks, watermarks, start=start, fail_on_data_loss=True)
    assert found == expected


def test_deleted_records_are_skipped_only_on_request() -> None:
    with pytest.raises(DataLossError, match="begins at offset 7"):
        starting_marks({A: 5}, {A: (7, 9)}, start="earliest", fail_on_data_loss=True)
    found = starting_marks({A: 5}, {A: (7, 9)}, start="latest", fail_on_data_loss=False)
    assert found == {A: 7}


@pytest.mark.parametrize("fail", [True, False])
def test_log_that_ends_before_the_mark_is_never_skipped(fail: bool) -> None:
    with pytest.raises(DataLossError, match="ends at offset 9"):
        starting_marks({A: 10}, {A: (7, 9)}, start="earliest", fail_on_data_loss=fail)
