"""Marks against redelivery, on Arrow tables without Spark, held against a loop over rows."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.sink.redelivery import Run, fresh, in_log_order, runs

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


def places_of(table: pa.Table) -> list[tuple[str, int, int, int]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@given(rows)
def test_log_order_sorts_and_keeps_rows_of_equal_place_in_their_order(places: list[Row]) -> None:
    ordered = places_of(in_log_order(table_of(places)))
    assert ordered == sorted((*place, number) for number, place in enumerate(places))


def test_rows_in_log_order_are_not_copied() -> None:
    table = table_of([("a", 0, 0), ("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("b", 0, 0)])
    assert in_log_order(table) is table


@given(rows, all_marks)
def test_fresh_rows_are_those_of_a_loop_over_rows(
    places: list[Row], marks: dict[tuple[str, int], int]
) -> None:
    table = in_log_order(table_of(places))
    kept = fresh(table, runs(table), marks)
    assert places_of(kept) == [row for row in places_of(table) if row[2] >= marks.get(row[:2], 0)]


@given(rows)
def test_runs_are_the_partitions_without_a_gap(places: list[Row]) -> None:
    table = in_log_order(table_of(places))
    found = runs(table)
    assert [run.place for run in found] == sorted({place[:2] for place in places})
    for run in found:
        offsets = [place[2] for place in places if place[:2] == run.place]
        assert (run.first, run.last) == (min(offsets), max(offsets))
    assert [run.start for run in found] == [0, *[run.stop for run in found]][: len(found)]
    assert sum(run.stop - run.start for run in found) == len(places)


def test_an_empty_table_has_no_runs() -> None:
    table = table_of([])
    assert runs(in_log_order(table)) == []
    assert fresh(table, [], {("a", 0): 3}) == table


def test_a_run_is_named_by_its_own_topic() -> None:
    table = table_of([("b", 1, 5), ("b", 1, 6)])
    assert runs(table) == [Run(("b", 1), 0, 2, 5, 6)]
