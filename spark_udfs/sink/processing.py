"""Work on the rows of a batch within a ledger's transaction: claim ids, then run the effect."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pykafka_core.errors import ConfigurationError
from pykafka_core.idempotent import Transaction
from spark_udfs.sink.message_ids import ID_COLUMN, check_ids, usable
from spark_udfs.sink.rows.micro_batch import SOURCE_COLUMNS, Rows

Effect = Callable[[Any, pa.Table], object]
"""Called with the ledger's connection and rows; must neither commit nor roll back."""

Mask = NDArray[np.bool_]


class Done(NamedTuple):
    """Numbers of rows."""

    processed: int = 0
    quarantined: int = 0


@dataclass(frozen=True, kw_only=True)
class Work:
    """Effects and id column. It can be pickled if the functions can.

    Attributes:
        effect: Called for each part of the new rows.
        id_column: Column of the message ids; None: all rows are new.
        quarantine: Called for each part of the rows without a usable id; None: such a row is an
            error.
    """

    effect: Effect
    id_column: str | None = None
    quarantine: Effect | None = None

    def process(self, transaction: Transaction, rows: Rows) -> Done:
        """Claim the ids, if any, and run the effect.

        Args:
            rows: The rows at or after the marks.

        Raises:
            MessageIdError: A row has an unusable id, and there is no quarantine.
        """
        if self.id_column is None:
            return Done(processed=_give(transaction, self.effect, rows.parts()))
        ids = rows.column(self.id_column)
        good = usable(ids)
        if self.quarantine is None:
            check_ids(rows, ids, good)
        # Claim first, before any other statement that may wait for a task: otherwise tasks that
        # share ids could deadlock.
        new = good.copy()
        new[good] = _claimed(transaction, ids, good)
        bad = 0
        if self.quarantine is not None:
            bad = _give(transaction, self.quarantine, _chosen(rows, ~good))
        return Done(_give(transaction, self.effect, _chosen(rows, new)), bad)


def _claimed(transaction: Transaction, ids: pa.ChunkedArray, good: Mask) -> Mask:
    """Claim the usable ids; return for each whether it is new."""
    wanted = ids if good.all() else ids.filter(pa.array(good))
    new: Mask = transaction.claim(wanted).to_numpy(zero_copy_only=False)
    return new


def _chosen(rows: Rows, mask: Mask) -> Iterator[pa.Table]:
    """Yield the non-empty parts of the rows that the mask selects."""
    if not mask.any():
        return
    start = 0
    for part in rows.parts():
        here = mask[start : start + part.num_rows]
        start += part.num_rows
        if here.all():
            yield part
        elif here.any():
            yield part.filter(pa.array(here))


def _give(transaction: Transaction, effect: Effect, parts: Iterator[pa.Table]) -> int:
    """Call the effect for each part; return the number of rows."""
    count = 0
    for part in parts:
        count += part.num_rows
        if ID_COLUMN in part.column_names:
            part = part.drop_columns([ID_COLUMN])
        effect(transaction.connection, part)
    return count


def check_source_columns(table: pa.Table) -> None:
    """Check that every row has a topic, a partition and an offset.

    Raises:
        ConfigurationError: A column has nulls.
    """
    for name in SOURCE_COLUMNS:
        if table[name].null_count:
            raise ConfigurationError([f"column {name} has nulls: keep it as the source gives it"])
