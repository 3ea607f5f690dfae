"""Message ids of rows: from a header, checked before a ledger is asked."""

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pykafka_core.errors import ConfigurationError, MessageIdError
from pykafka_core.idempotent import ID_SIZE_MAX
from spark_udfs.sink.redelivery import PLACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ID_COLUMN: Final = "__message_id"
"""Where ids that are computed stand while a batch is processed."""


def message_header(name: str, headers: str = "headers") -> "Column":
    """The value of the header ``name``: binary, of several the last, null without one.

    Args:
        name: The header's key.
        headers: The column that the Kafka source has with ``includeHeaders``.
    """
    from pyspark.sql import functions as F

    named = F.filter(F.col(headers), lambda header: header["key"] == F.lit(name))
    return F.try_element_at(named, F.lit(-1))["value"]


def with_ids(df: "DataFrame", ids: "str | Column | None") -> "DataFrame":
    """The rows with their computed ids as `ID_COLUMN`; as they are when the ids are a column already.

    Raises:
        ConfigurationError: The columns that the ids need are not there.
    """
    from pyspark.errors import AnalysisException

    if ids is None or isinstance(ids, str):
        return df
    try:
        return df.withColumn(ID_COLUMN, ids)
    except AnalysisException as error:
        raise ConfigurationError([f"ids cannot be computed from the columns: {error}"]) from error


def check_ids(rows: pa.Table, ids: pa.Array) -> None:
    """Say which is the first row whose id no ledger takes.

    Raises:
        MessageIdError: Names it, by its offset where rows have one.
    """
    size = pc.binary_length(ids)
    good = pc.fill_null(pc.and_(pc.greater(size, 0), pc.less_equal(size, ID_SIZE_MAX)), False)
    first = pc.index(good, False).as_py()
    if first < 0:
        return
    where = f"row {first} of the batch"
    if set(PLACE) <= set(rows.column_names):
        topic, partition, offset = (rows[name][first] for name in PLACE)
        where = f"the record at offset {offset} of {topic}-{partition}"
    what = "is null" if not ids[first].is_valid else f"has {size[first]} bytes"
    raise MessageIdError(
        f"{where}: its message id {what}; 1 to {ID_SIZE_MAX} bytes are needed. "
        "Filter such rows out, choose other ids, or fingerprint long ones"
    )
