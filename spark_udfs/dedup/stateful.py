"""The way of a stream through blocks, a state for each bucket, and back to rows.

    rows -- pack --> blocks -- by bucket: state + blocks -> state + blocks --> blocks -- rows_of --> rows

Spark checkpoints the state: one value for each bucket, read and written once in a micro-batch. What a replayed
micro-batch gives is what it gave at first, since its state is that of the batch before and blocks are sorted by their
place in the input.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_udfs.dedup.blocks import BLOCK_SCHEMA, Routing, pack, read, rows_of, split, write
from spark_udfs.dedup.fingerprints import Fingerprints, Mask
from spark_udfs.dedup.memory import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.state import GroupState

__all__ = ["Keeper", "keep_new"]

Keep: TypeAlias = Callable[
    [bytes | None, Fingerprints, npt.NDArray[np.int64] | None, int],
    tuple[npt.NDArray[np.intp], bytes],
]
"""From what was remembered (None at first), the rows' fingerprints and numbers, and the time of the micro-batch in
milliseconds, to the indices of the rows to keep, ascending, and what is to be remembered."""

STATE_SCHEMA: Final = "settings string, memory binary"


@dataclass(frozen=True)
class Keeper:
    """What decides which rows are new.

    Attributes:
        keep: As above.
        settings: What the state means: a state that was written under others is refused.
    """

    keep: Keep
    settings: dict[str, Any]


def keep_new(
    df: "DataFrame",
    ids: Sequence["Column"],
    number: "Column | None",
    *,
    buckets: int,
    seed: int,
    keeper: Keeper,
) -> "DataFrame":
    """The rows of the stream ``df`` that ``keeper`` keeps, and those of which an id is null."""
    extra = [column.alias(f"__id_{at}") for at, column in enumerate(ids)]
    if number is not None:
        extra.append(number.alias("__number"))
    routing = Routing(len(df.columns), len(ids), buckets, seed, every_batch=True)
    settings = json.dumps({**keeper.settings, "buckets": buckets, "seed": seed}, sort_keys=True)
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
        chosen, memory = _choose(keep, blocks, known, numbered, state.getCurrentProcessingTimeMs())
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
    if before != settings:
        raise ValueError(
            f"the checkpoint remembers ids under the settings {before}, and this query has {settings}: "
            "go on with those of the checkpoint, or start with a new one"
        )
    return bytes(memory)


def _in_place(frames: "Iterator[pd.DataFrame]") -> list[pa.RecordBatch]:
    """The blocks of one bucket, in the order of the input."""
    placed = [pair for frame in frames for pair in zip(frame["place"], frame["rows"], strict=True)]
    return [read(rows) for _, rows in sorted(placed, key=lambda pair: int(pair[0]))]


def _choose(
    keep: Keep, blocks: Sequence[pa.RecordBatch], known: bytes | None, numbered: bool, now_ms: int
) -> tuple[list[Mask], bytes]:
    """Which rows of each block to keep, and what to remember."""
    parts = [split(block.column(block.num_columns - 1)) for block in blocks]
    numbers = None
    if numbered:
        pairs = zip(blocks, parts, strict=True)
        numbers = np.concatenate([_numbers(block)[at] for block, (_, at) in pairs])
    kept, memory = keep(known, np.concatenate([halves for halves, _ in parts]), numbers, now_ms)
    new = np.zeros(sum(len(at) for _, at in parts), np.bool_)
    new[kept] = True
    masks, start = [], 0
    for block, (_, at) in zip(blocks, parts, strict=True):
        mask = np.ones(block.num_rows, np.bool_)  # rows without an id stay
        mask[at] = new[start : start + len(at)]
        start += len(at)
        masks.append(mask)
    return masks, memory


def _numbers(block: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The numbers of the rows; `UNKNOWN` for null."""
    column = block.column(block.num_columns - 2).fill_null(UNKNOWN)
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers
