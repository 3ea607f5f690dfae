"""`dedup_batch`: one row for each id of a table."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from spark_udfs.dedup.blocks import (
    BLOCK_SCHEMA,
    Routing,
    block_type,
    pack,
    read,
    rows_of,
    split,
    write,
)
from spark_udfs.dedup.columns import (
    Ids,
    check_buckets,
    check_ids,
    check_names,
    check_order,
    placed,
)
from spark_udfs.dedup.fingerprints import first_of_each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["dedup_batch"]

Keep = Literal["first", "last"]
_KEEPS: Final = get_args(Keep)


def dedup_batch(
    df: "DataFrame",
    ids: Ids,
    *,
    keep: Keep = "first",
    order_by: Ids = "offset",
    buckets: int = 64,
) -> "DataFrame":
    """Return one row of ``df`` for each id, and every row with a null in its id.

    Stateless and deterministic: inside ``foreachBatch`` it only removes duplicates within the
    micro-batch. Ids are compared by 128-bit fingerprints, as in `dedup_stream`. The order of the
    result is unspecified.

    Args:
        df: A table, not a stream.
        ids: The columns of the id: string, binary, integer, date or timestamp.
        keep: Which of the rows with one id to keep: the one with the least or the greatest
            ``order_by``. A null in ``order_by`` loses against any value; among equal rows the first
            or the last in input order wins.
        order_by: The columns that define the order, each ascending.
        buckets: 1 to 4096. A Python worker holds the rows of one bucket in memory at a time. Rows
            without an id are distributed over all buckets by ``order_by``.

    Raises:
        ValueError, TypeError: ``df`` is a stream, or an argument is invalid.
        pyspark.errors.AnalysisException: A column does not exist.
    """
    if df.isStreaming:
        raise ValueError("dedup_batch needs a table; for a stream there is dedup_stream")
    if keep not in _KEEPS:
        raise ValueError(f"keep is 'first' or 'last', not {keep!r}")
    check_buckets(buckets)
    check_names(df)
    check_ids(df, ids)
    order = check_order(df, order_by)
    width, (at, more) = len(df.columns), placed(df, ids)
    spread = F.pmod(F.xxhash64(F.spark_partition_id(), *order), F.lit(buckets)).cast("int")
    extra = [
        column.alias(f"__extra_{number}") for number, column in enumerate([*more, *order, spread])
    ]
    routing = Routing(width, tuple(at), buckets)
    kind = block_type(df)
    blocks = df.select("*", *extra).mapInArrow(pack(routing, kind), BLOCK_SCHEMA)
    # Blocks are unpacked by mapInArrow: applyInArrow rejects timestamps with the session time zone.
    kept = blocks.groupBy("bucket").applyInArrow(_reduce(width, keep, kind), "rows binary")
    return kept.mapInArrow(rows_of(width), df.schema)


def _reduce(width: int, keep: Keep, kind: pa.DataType) -> Any:
    """Return the function that maps the blocks of a bucket to blocks of the rows to keep."""

    def reduce(blocks: pa.Table) -> pa.Table:
        ordered = blocks.sort_by("place").column("rows")
        rows = [read(block.as_buffer()) for block in ordered]
        kept = [write(block) for block in _winners(rows, width, keep) if block.num_rows]
        # One record batch for each block, because an Arrow array of binaries is limited to 2 GiB.
        return pa.Table.from_batches(
            [pa.RecordBatch.from_arrays([pa.array([block], kind)], ["rows"]) for block in kept]
        )

    reduce.__annotations__ = {"blocks": pa.Table, "return": pa.Table}
    return reduce


def _winners(blocks: list[pa.RecordBatch], width: int, keep: Keep) -> Iterator[pa.RecordBatch]:
    """Yield the user's columns of the rows to keep, block by block."""
    parts = [split(block.column(block.num_columns - 1)) for block in blocks]
    ranks = [block.slice(0).columns[width:-1] for block in blocks]
    order = _order(
        [_take(columns, at) for columns, (_, at) in zip(ranks, parts, strict=True)], keep
    )
    fingerprints = np.concatenate([halves for halves, _ in parts])
    new = np.zeros(len(fingerprints), np.bool_)
    new[order[first_of_each(fingerprints.take(order, axis=0))]] = True
    start = 0
    for block, (_, at) in zip(blocks, parts, strict=True):
        mask = np.ones(block.num_rows, np.bool_)  # rows without an id stay
        mask[at] = new[start : start + len(at)]
        start += len(at)
        kept = block.filter(pa.array(mask))
        yield pa.RecordBatch.from_arrays(kept.columns[:width], kept.schema.names[:width])


def _take(columns: list[pa.Array], at: npt.NDArray[np.intp]) -> pa.RecordBatch:
    names = [str(number) for number in range(len(columns))]
    return pa.RecordBatch.from_arrays([column.take(pa.array(at)) for column in columns], names)


def _order(ranks: list[pa.RecordBatch], keep: Keep) -> npt.NDArray[np.intp]:
    """Return row indices, best row first."""
    keys: dict[str, pa.ChunkedArray] = {}
    table = pa.Table.from_batches(ranks)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _has_odd_values(column):
            keys[f"class {name}"] = _classes(column, keep)
        keys[name] = column
    order: npt.NDArray[np.intp] = pc.sort_indices(
        pa.table(keys), sort_keys=[(name, "ascending") for name in keys]
    ).to_numpy()
    return order if keep == "first" else order[::-1]


def _has_odd_values(column: pa.ChunkedArray) -> bool:
    """Return whether Arrow may misplace some values when it sorts: nulls and NaN."""
    return bool(column.null_count) or pa.types.is_floating(column.type)


def _classes(column: pa.ChunkedArray, keep: Keep) -> pa.ChunkedArray:
    """Return a sort key to put before the values: nulls lose; NaN is greatest, as in Spark."""
    nan = (
        pc.is_nan(column).cast("int8")
        if pa.types.is_floating(column.type)
        else pa.scalar(0, "int8")
    )
    return pc.if_else(column.is_null(), pa.scalar(2 if keep == "first" else -1, "int8"), nan)
