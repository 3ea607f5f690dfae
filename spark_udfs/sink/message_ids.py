"""Message ids of rows: taken from a header, and checked before they are passed to a ledger."""

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pykafka_core.errors import ConfigurationError, MessageIdError
from pykafka_core.idempotent import ID_SIZE_MAX
from spark_udfs.sink.rows.micro_batch import SOURCE_COLUMNS, Rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ID_COLUMN: Final = "__message_id"
"""Column for computed ids while a batch is processed."""


def message_header(name: str, headers: str = "headers") -> "Column":
    """Return the value of the header ``name``: binary, the last one if repeated, null if missing.

    Args:
        name: The header's key.
        headers: The headers column; the Kafka source has one with ``includeHeaders``.

    Raises:
        ConfigurationError: The name is empty or not a string.
    """
    from pyspark.sql import functions as F

    if not isinstance(name, str) or not name:
        raise ConfigurationError([f"message_header needs the name of a header, not {name!r}"])

    named = F.filter(F.col(headers), lambda header: header["key"] == F.lit(name))
    return F.try_element_at(named, F.lit(-1))["value"]


def with_ids(df: "DataFrame", ids: "str | Column | None") -> "DataFrame":
    """Add computed ids as `ID_COLUMN`; return the rows unchanged if the ids are a column already.

    Raises:
        ConfigurationError: Columns that the ids need are missing, or `ID_COLUMN` already exists.
    """
    from pyspark.errors import AnalysisException

    if ID_COLUMN in map(str.lower, df.schema.names):
        raise ConfigurationError(
            [f"column {ID_COLUMN} is the sink's own, which the effect does not get: rename yours"]
        )
    if ids is None or isinstance(ids, str):
        return df
    try:
        return df.withColumn(ID_COLUMN, ids)
    except AnalysisException as error:
        raise ConfigurationError([f"ids cannot be computed from the columns: {error}"]) from error


def usable(ids: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a mask of the ids that a ledger accepts."""
    sizes = pc.binary_length(ids)
    good = pc.and_(pc.greater(sizes, 0), pc.less_equal(sizes, ID_SIZE_MAX))
    known: NDArray[np.bool_] = pc.fill_null(good, False).to_numpy()
    return known


def check_ids(rows: Rows, ids: pa.ChunkedArray, good: NDArray[np.bool_]) -> None:
    """Check that all rows have usable ids.

    Raises:
        MessageIdError: Names the first row without one, by its offset if rows have offsets.
    """
    if good.all():
        return
    first = int(np.argmin(good))
    where = f"row {first} of the batch"
    if set(SOURCE_COLUMNS) <= set(rows.table.column_names):
        topic, partition, offset = (rows.column(name)[first] for name in SOURCE_COLUMNS)
        where = f"the record at offset {offset} of {topic}-{partition}"
    value = ids[first]
    what = f"has {pc.binary_length(value)} bytes" if value.is_valid else "is null"
    raise MessageIdError(
        f"{where}: its message id {what}; 1 to {ID_SIZE_MAX} bytes are needed. Filter such rows out, choose other ids, "
        "fingerprint long ones, or give a quarantine"
    )
