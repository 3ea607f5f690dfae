"""`fingerprint`: the 128-bit digest of an id, as a column."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.functions import arrow_udf

from pykafka_core import kernels
from spark_udfs.dedup.columns import as_columns, check_seed

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["fingerprint"]


def fingerprint(*cols: "str | Column", seed: int = 0) -> "Column":
    """The fingerprint of an id: 16 bytes, by `pykafka_core.kernels.fingerprints`.

    Of one column it is the MurmurHash3 (x64, 128 bits) of the value's bytes. It is null where any of the columns is:
    part of an id is no id.

    Args:
        cols: Columns of type string, binary, integer, date or timestamp.
        seed: 0 to 4294967295.

    Raises:
        ValueError, TypeError: No columns, or no such seed. A column of another type is known only where the query runs,
            which then fails with a TypeError that names it.
    """
    check_seed(seed)
    columns = as_columns("fingerprint", cols)

    def digest(*values: pa.Array) -> pa.Array:
        digests = kernels.fingerprints(*values, seed=seed).cast(pa.binary())
        for value in values:
            if value.null_count:
                digests = pc.if_else(value.is_valid(), digests, pa.scalar(None, pa.binary()))
        return digests

    udf: Any = arrow_udf
    digested: Column = udf(digest, "binary")(*columns)
    return digested
