"""The way of a stream through blocks, a state for each bucket, and back to rows.

    rows -- pack --> blocks -- by bucket: state + blocks -> state + blocks --> blocks -- rows_of --> rows

Spark checkpoints the state: one value for each bucket, read and written once in a micro-batch. What a replayed
micro-batch gives is what it gave at first, since its state is that of the batch before and blocks are sorted by their
place in the input.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from spark_udfs.dedup.blocks import BLOCK_SCHEMA, Routing, pack, read, rows_of, write
from spark_udfs.dedup.choice import Keep, choose, numbers_of
from spark_udfs.dedup.columns import Ids, placed
from spark_udfs.dedup.settings import agree, written

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.state import GroupState

__all__ = ["Keeper", "keep_new"]

STATE_SCHEMA: Final = "settings string, memory binary"


@dataclass(frozen=True)
class Keeper:
    """What decides which rows are new.

    Attributes:
        keep: As `Keep` says.
        settings: What the state means: a state that was written under others is refused.
    """

    keep: Keep
    settings: dict[str, Any]


def keep_new(
    df: "DataFrame",
    ids: Ids,
    number: "Column | None",
    *,
    buckets: int,
    seed: int,
    keeper: Keeper,
) -> "DataFrame":
    """The rows of the stream ``df`` that ``keeper`` keeps, and those of which an id is null."""
    at, more = placed(df, ids)
    extra = [column.alias(f"__id_{place}") for place, column in enumerate(more)]
    if number is not None:
        extra.append(number.alias("__number"))
    routing = Routing(len(df.columns), tuple(at), buckets, seed, every_batch=True)
    settings = written({**keeper.settings, "buckets": buckets, "seed": seed})
    blocks = df.select("*", *extra).mapInArrow(pack(routing), BLOCK_SCHEMA)
    kept = blocks.groupBy("bucket").applyInPandasWithState(
        _step(keeper.keep, settings, numbered=number is not None),
        "rows binary",
        STATE_SCHEMA,
        "append",
        "NoTimeout",
    )
    return kept.mapInArrow(rows_of(len(df.columns)), df.schema)


def _step(keep: Keep, settings: str, *, numbered: bool) -> Any:
    """The function of one bucket and one micro-batch that Spark calls."""

    def step(
        key: tuple[Any, ...], frames: "Iterator[pd.DataFrame]", state: "GroupState"
    ) -> "Iterator[pd.DataFrame]":
        import pandas as pd

        known = _known(state, settings)
        blocks = _in_place(frames)
        digests = [block.column(block.num_columns - 1) for block in blocks]
        numbers = None
        if numbered:
            numbers = [numbers_of(block.column(block.num_columns - 2)) for block in blocks]
        now_ms = state.getCurrentProcessingTimeMs()
        chosen, memory = choose(keep, known, digests, numbers, now_ms)
        state.update((settings, memory))
        rows = [
            write(block.filter(pa.array(mask)))
            for block, mask in zip(blocks, chosen, strict=True)
            if mask.any()
        ]
        yield pd.DataFrame({"rows": pd.Series(rows, dtype=object)})

    return step


def _known(state: "GroupState", settings: str) -> bytes | None:
    """What the state remembers.

    Raises:
        ValueError: It was written under other settings.
    """
    if not state.exists:
        return None
    before, memory = state.get
    if not agree(before, settings):
        raise ValueError(
            f"the checkpoint remembers ids under the settings {before}, and this query has {settings}: "
            "go on with those of the checkpoint, or start with a new one"
        )
    return bytes(memory)


def _in_place(frames: "Iterator[pd.DataFrame]") -> list[pa.RecordBatch]:
    """The blocks of one bucket, in the order of the input."""
    placed = [pair for frame in frames for pair in zip(frame["place"], frame["rows"], strict=True)]
    return [read(rows) for _, rows in sorted(placed, key=lambda pair: int(pair[0]))]
