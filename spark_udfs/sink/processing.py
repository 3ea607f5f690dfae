"""Rows of a batch within a ledger's transaction: claimed, and given to the effect."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pykafka_core.errors import ConfigurationError
from pykafka_core.idempotent import Transaction
from spark_udfs.sink.message_ids import ID_COLUMN, check_ids
from spark_udfs.sink.redelivery import PLACE

Effect = Callable[[Any, pa.Table], object]
"""Gets the ledger's connection and the rows; neither commits nor rolls back."""


def process(transaction: Transaction, rows: pa.Table, id_column: str | None, effect: Effect) -> int:
    """Claim the ids, if there are any, and do the effect.

    Args:
        rows: Those at or after the marks.
        id_column: Where the ids are.

    Returns:
        How many rows it was done for.

    Raises:
        MessageIdError: A row has no id that can be claimed.
    """
    if id_column is not None:
        ids = rows[id_column].combine_chunks()
        check_ids(rows, ids)
        rows = rows.filter(transaction.claim(ids))
    if ID_COLUMN in rows.column_names:
        rows = rows.drop_columns([ID_COLUMN])
    if rows.num_rows:
        effect(transaction.connection, rows)
    return int(rows.num_rows)


def check_places(table: pa.Table) -> None:
    """Every row says where it was read.

    Raises:
        ConfigurationError: One does not.
    """
    for name in PLACE:
        if table[name].null_count:
            raise ConfigurationError([f"column {name} has nulls: keep it as the source gives it"])
