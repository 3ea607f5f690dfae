"""Marks against redelivery, on Arrow tables without Spark, compared with a loop over rows."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.sink.rows.micro_batch import Batch, PartitionRows, Rows, in_log_order
from spark_udfs.sink.rows.row_bytes import row_bytes

Row = tuple[str, int, int]
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 9)), max_size=40
)
all_marks = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2)), st.integers(0, 12)
)


def table_of(places: list[Row], chunk: int = 3) -> pa.Table:
    """Return a table of several chunks, like Spark's; `number` is a row's original position."""
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
def test_log_order_is_a_stable_sort(places: list[Row]) -> None:
    ordered = places_of(all_of(in_log_order(table_of(places))))
    assert ordered == sorted((*place, number) for number, place in enumerate(places))


@pytest.mark.parametrize("first", ["a", "c"])
def test_consecutive_partitions_in_any_order_are_not_copied(first: str) -> None:
    table = table_of([(first, 0, 0), (first, 0, 0), (first, 0, 1), ("b", 1, 0), ("b", 0, 0)])
    batch = in_log_order(table)
    assert batch.table is table
    assert batch.order is None
    assert [row[:2] for row in places_of(all_of(batch))] == sorted(
        [(first, 0)] * 3 + [("b", 0), ("b", 1)]
    )


@given(rows, all_marks)
def test_fresh_rows_equal_those_of_a_loop_over_rows(
    places: list[Row], marks: dict[tuple[str, int], int]
) -> None:
    batch = in_log_order(table_of(places))
    kept = batch.fresh(marks)
    wanted = [row for row in places_of(all_of(batch)) if row[2] >= marks.get(row[:2], 0)]
    assert places_of(kept) == wanted
    assert len(kept) == len(wanted)
    assert kept.column("number").to_pylist() == [row[3] for row in wanted]


@given(rows, st.integers(1, 200))
def test_parts_hold_all_rows_in_order_and_no_more_bytes_than_a_piece_or_the_limit(
    places: list[Row], bytes_max: int
) -> None:
    batch = in_log_order(table_of(places))
    fresh = all_of(batch)
    assert places_of(fresh, bytes_max) == places_of(fresh)
    for part in fresh.parts(bytes_max=bytes_max):
        assert part.num_rows
        assert part.nbytes <= bytes_max or part["number"].num_chunks == 1
        if batch.order is not None:
            assert part.nbytes <= bytes_max or part.num_rows == 1


@pytest.mark.parametrize("large", [False, True])
def test_rows_out_of_log_order_are_not_combined_beyond_the_limit_of_a_part(large: bool) -> None:
    """Regression: more than 2 GiB of values always failed, and less was copied for each part.

    The rows of all chunks are the same megabyte, so the table itself is small.
    """
    kind = pa.large_binary() if large else pa.binary()
    count = 2200
    one = pa.array([b"x" * (1 << 20)], kind)
    table = pa.table(
        {
            "topic": pa.array(["a"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count, 0, -1)),
            "value": pa.chunked_array([one] * count),
        }
    )
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    rows = all_of(in_log_order(table))
    offsets: list[int] = []
    held = 0
    for part in rows.parts(8 << 20):
        held = max(held, pa.total_allocated_bytes() - before)
        assert part.nbytes <= 8 << 20
        assert part["value"].type == kind
        offsets += part["offset"].to_pylist()
    assert offsets == list(range(1, count + 1))
    assert held < 32 << 20
    assert rows.column("offset").to_pylist() == offsets


def test_parts_are_cut_by_the_sizes_of_their_rows() -> None:
    """A few large rows among many small ones; by averages one part would get all large ones."""
    large = [n % 100 == 0 for n in range(2000)]
    offsets = [n if is_large else 5000 - n for n, is_large in enumerate(large)]
    table = pa.table(
        {
            "topic": pa.array(["a"] * 2000),
            "partition": pa.array([0] * 2000, pa.int32()),
            "offset": pa.array(offsets),
            "value": pa.array([b"x" * (100_000 if is_large else 10) for is_large in large]),
        }
    )
    parts = list(all_of(in_log_order(table)).parts(250_000))
    assert max(part.nbytes for part in parts) <= 250_000
    assert [n for part in parts for n in part["offset"].to_pylist()] == sorted(offsets)


def test_bytes_of_a_row_are_those_of_its_values_even_if_nested_or_sliced() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.large_binary()))), ("n", pa.int64())])
    sizes = [0, 5000, 30_000, 1, 10_000]
    values = [{"m": [("k", [b"x" * size, b""]), ("l", None)], "n": 1} for size in sizes]
    rows = pa.record_batch({"value": pa.array([*values, None], kind), "empty": pa.nulls(6)})
    found = row_bytes(rows)
    for size, has in zip([*sizes, 0], found, strict=True):
        assert size <= has <= size + 200
    assert row_bytes(rows.slice(2, 3)).tolist() == found[2:5].tolist()


@given(rows)
def test_runs_are_contiguous_partitions(places: list[Row]) -> None:
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


def test_run_has_the_name_of_its_topic() -> None:
    table = table_of([("b", 1, 5), ("b", 1, 6)])
    assert in_log_order(table).runs == [PartitionRows(("b", 1), 0, 2, 5, 6)]
