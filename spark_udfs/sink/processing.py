"""Rows of a batch within a ledger's transaction: claimed, and given to the effect part by part."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pykafka_core.errors import ConfigurationError
from pykafka_core.idempotent import Transaction
from spark_udfs.sink.message_ids import ID_COLUMN, check_ids, usable
from spark_udfs.sink.rows.redelivery import PLACE, Rows

Effect = Callable[[Any, pa.Table], object]
"""Gets the ledger's connection and rows; neither commits nor rolls back."""

Mask = NDArray[np.bool_]


class Done(NamedTuple):
    """How many rows it was done for."""

    processed: int = 0
    quarantined: int = 0


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is done with rows. It can be pickled if the functions can.

    Attributes:
        effect: Called for each part of the new rows.
        id_column: Where the message ids are; None: there are none, and all rows are new.
        quarantine: Called for each part of the rows without a usable id; None: such a row is an error.
    """

    effect: Effect
    id_column: str | None = None
    quarantine: Effect | None = None

    def process(self, transaction: Transaction, rows: Rows) -> Done:
        """Claim the ids, if there are any, and do the effect.

        Args:
            rows: Those at or after the marks.

        Raises:
            MessageIdError: A row has no id that can be claimed, and there is no quarantine.
        """
        if self.id_column is None:
            return Done(processed=_give(transaction, self.effect, rows.parts()))
        ids = rows.column(self.id_column)
        good = usable(ids)
        if self.quarantine is None:
            check_ids(rows, ids, good)
        # Before anything else that may wait for another task: only then do tasks that share ids never wait in a circle.
        new = good.copy()
        new[good] = _claimed(transaction, ids, good)
        bad = 0
        if self.quarantine is not None:
            bad = _give(transaction, self.quarantine, _chosen(rows, ~good))
        return Done(_give(transaction, self.effect, _chosen(rows, new)), bad)


def _claimed(transaction: Transaction, ids: pa.ChunkedArray, good: Mask) -> Mask:
    """Of the good ids, which are new."""
    wanted = ids if good.all() else ids.filter(pa.array(good))
    new: Mask = transaction.claim(wanted).to_numpy(zero_copy_only=False)
    return new


def _chosen(rows: Rows, mask: Mask) -> Iterator[pa.Table]:
    """The parts of the rows that the mask has, without those that are empty then."""
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
    """Call the effect for each part; how many rows there were."""
    count = 0
    for part in parts:
        count += part.num_rows
        if ID_COLUMN in part.column_names:
            part = part.drop_columns([ID_COLUMN])
        effect(transaction.connection, part)
    return count


def check_places(table: pa.Table) -> None:
    """Every row says where it was read.

    Raises:
        ConfigurationError: One does not.
    """
    for name in PLACE:
        if table[name].null_count:
            raise ConfigurationError([f"column {name} has nulls: keep it as the source gives it"])
