"""Marks against redelivery, on Arrow tables without Spark, held against a loop over rows."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.sink.redelivery import Batch, Rows, Run, in_log_order

Row = tuple[str, int, int]
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 9)), max_size=40
)
all_marks = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2)), st.integers(0, 12)
)


def table_of(places: list[Row], chunk: int = 3) -> pa.Table:
    """In several chunks, as Spark gives it; `number` says where a row stood."""
    names = ["topic", "partition", "offset", "number"]
    types = pa.schema(zip(names, [pa.string(), pa.int32(), pa.int64(), pa.int64()], strict=True))
    values = [[*place, number] for number, place in enumerate(places)]
    chunks = [
        pa.Table.from_pylist(
            [dict(zip(names, v, strict=True)) for v in values[i : i + chunk]], types
        )
        for i in range(0, len(values), chunk)
    ]
    return pa.concat_tables([types.empty_table(), *chunks])


def places_of(rows: Rows, bytes_max: int = 1 << 20) -> list[tuple[str, int, int, int]]:
    return [
        tuple(row.values()) for part in rows.parts(bytes_max=bytes_max) for row in part.to_pylist()
    ]


def all_of(batch: Batch) -> Rows:
    return batch.fresh({})


@given(rows)
def test_log_order_sorts_and_keeps_rows_of_equal_place_in_their_order(places: list[Row]) -> None:
    ordered = places_of(all_of(in_log_order(table_of(places))))
    assert ordered == sorted((*place, number) for number, place in enumerate(places))


@pytest.mark.parametrize("first", ["a", "c"])
def test_partitions_that_follow_each_other_in_any_order_are_not_copied(first: str) -> None:
    table = table_of([(first, 0, 0), (first, 0, 0), (first, 0, 1), ("b", 1, 0), ("b", 0, 0)])
    batch = in_log_order(table)
    assert batch.table is table
    assert batch.order is None
    assert [row[:2] for row in places_of(all_of(batch))] == sorted(
        [(first, 0)] * 3 + [("b", 0), ("b", 1)]
    )


@given(rows, all_marks)
def test_fresh_rows_are_those_of_a_loop_over_rows(
    places: list[Row], marks: dict[tuple[str, int], int]
) -> None:
    batch = in_log_order(table_of(places))
    kept = batch.fresh(marks)
    wanted = [row for row in places_of(all_of(batch)) if row[2] >= marks.get(row[:2], 0)]
    assert places_of(kept) == wanted
    assert len(kept) == len(wanted)
    assert kept.column("number").to_pylist() == [row[3] for row in wanted]


@given(rows, st.integers(1, 200))
def test_parts_have_all_rows_in_their_order_and_no_more_bytes_than_a_piece_or_the_limit(
    places: list[Row], bytes_max: int
) -> None:
    batch = in_log_order(table_of(places))
    fresh = all_of(batch)
    assert places_of(fresh, bytes_max) == places_of(fresh)
    for part in fresh.parts(bytes_max=bytes_max):
        assert part.num_rows
        assert part.nbytes <= bytes_max or part["number"].num_chunks == 1


@given(rows)
def test_runs_are_the_partitions_without_a_gap(places: list[Row]) -> None:
    found = in_log_order(table_of(places)).runs
    assert [run.place for run in found] == sorted({place[:2] for place in places})
    for run in found:
        offsets = [place[2] for place in places if place[:2] == run.place]
        assert (run.first, run.last) == (min(offsets), max(offsets))
    bounds = sorted((run.start, run.stop) for run in found)
    assert [start for start, _ in bounds] == [0, *[stop for _, stop in bounds]][: len(found)]
    assert sum(run.stop - run.start for run in found) == len(places)


def test_an_empty_table_has_no_runs() -> None:
    batch = in_log_order(table_of([]))
    assert batch.runs == []
    assert len(batch.fresh({("a", 0): 3})) == 0
    assert list(batch.fresh({}).parts()) == []
    assert batch.fresh({}).column("topic").to_pylist() == []


def test_a_run_is_named_by_its_own_topic() -> None:
    table = table_of([("b", 1, 5), ("b", 1, 6)])
    assert in_log_order(table).runs == [Run(("b", 1), 0, 2, 5, 6)]
