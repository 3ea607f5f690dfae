"""Message ids of rows: from a header, checked before a ledger is asked."""

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pykafka_core.errors import ConfigurationError, MessageIdError
from pykafka_core.idempotent import ID_SIZE_MAX
from spark_udfs.sink.rows.redelivery import PLACE, Rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ID_COLUMN: Final = "__message_id"
"""Where ids that are computed stand while a batch is processed."""


def message_header(name: str, headers: str = "headers") -> "Column":
    """The value of the header ``name``: binary, of several the last, null without one.

    Args:
        name: The header's key.
        headers: The column that the Kafka source has with ``includeHeaders``.

    Raises:
        ConfigurationError: The name is empty or no string.
    """
    from pyspark.sql import functions as F

    if not isinstance(name, str) or not name:
        raise ConfigurationError([f"message_header needs the name of a header, not {name!r}"])

    named = F.filter(F.col(headers), lambda header: header["key"] == F.lit(name))
    return F.try_element_at(named, F.lit(-1))["value"]


def with_ids(df: "DataFrame", ids: "str | Column | None") -> "DataFrame":
    """The rows with their computed ids as `ID_COLUMN`; as they are when the ids are a column already.

    Raises:
        ConfigurationError: The columns that the ids need are not there, or the rows have one of that name already.
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
    """Which of the ids a ledger takes."""
    sizes = pc.binary_length(ids)
    good = pc.and_(pc.greater(sizes, 0), pc.less_equal(sizes, ID_SIZE_MAX))
    known: NDArray[np.bool_] = pc.fill_null(good, False).to_numpy()
    return known


def check_ids(rows: Rows, ids: pa.ChunkedArray, good: NDArray[np.bool_]) -> None:
    """Say which is the first row whose id no ledger takes.

    Raises:
        MessageIdError: Names it, by its offset where rows have one.
    """
    if good.all():
        return
    first = int(np.argmin(good))
    where = f"row {first} of the batch"
    if set(PLACE) <= set(rows.table.column_names):
        topic, partition, offset = (rows.column(name)[first] for name in PLACE)
        where = f"the record at offset {offset} of {topic}-{partition}"
    value = ids[first]
    what = f"has {pc.binary_length(value)} bytes" if value.is_valid else "is null"
    raise MessageIdError(
        f"{where}: its message id {what}; 1 to {ID_SIZE_MAX} bytes are needed. Filter such rows out, choose other ids, "
        "fingerprint long ones, or give a quarantine"
    )
