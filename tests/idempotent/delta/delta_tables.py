"""Common parts of the tests of a ledger in a Delta table: rows of one column, and the rows of a
table.
"""

from typing import Any

import deltalake
import pyarrow as pa


def rows(*values: int) -> Any:
    return pa.table({"x": pa.array(values, pa.int64())})


def contents(uri: str) -> Any:
    """Return the table's rows. `to_pyarrow_table` would leave threads that abort a process which
    ends soon after.
    """
    return pa.table(deltalake.DeltaTable(uri).scan().read_all())


def written(uri: str) -> list[int]:
    return sorted(contents(uri)["x"].to_pylist())
