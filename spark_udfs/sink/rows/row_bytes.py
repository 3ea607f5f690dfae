"""Estimated sizes of rows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_FIXED_BYTES = 8
"""Fixed size of a value: its offset, or the value itself."""


def row_bytes(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the approximate size of each row. Of mapped columns, only offsets are read."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        sizes += _value_bytes(column)
    return sizes


def _value_bytes(values: pa.Array) -> NDArray[np.int64]:
    kind = values.type
    sizes = np.full(len(values), _FIXED_BYTES, np.int64)
    if pa.types.is_struct(kind):
        for field in values.flatten():
            sizes += _value_bytes(field)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        before = np.concatenate(([0], np.cumsum(_value_bytes(values.values))))
        sizes += np.diff(before[values.offsets.to_numpy()])
    elif any(is_kind(kind) for is_kind in _WITH_LENGTH):
        sizes += pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    return sizes


_WITH_LENGTH = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
)
