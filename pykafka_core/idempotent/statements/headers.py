"""Kafka's headers, columns of array<struct<key: string, value: binary>>, in the databases' formats.

PostgreSQL: an array of a composite type. Its binary format is created here without a Python object
per header. An array is number of dimensions, 0, element type, number of elements and lower bound,
then length and value of each; an empty one has no dimension. A composite value is its number of
fields, then type, length and value of each.

This module imports pyarrow and numpy: import it only where rows are in Arrow format.
"""

import json
import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pykafka_core.idempotent.postgres import binary_copy

FIELDS: Final = "key text, value bytea"
"""The fields of PostgreSQL's composite type."""

_TEXT, _BYTEA = 25, 17  # type OIDs, which are the same in every server
_BINARY: Final = pa.large_binary()
_NOTHING: Final = pa.scalar(b"", _BINARY)
_KEY_KINDS: Final = (pa.string(), pa.large_string())
_VALUE_KINDS: Final = (pa.binary(), pa.large_binary())


def are_headers(kind: Any) -> bool:
    """Return whether a column of this type holds headers."""
    if not (types.is_list(kind) or types.is_large_list(kind)):
        return False
    if not types.is_struct(kind.value_type) or kind.value_type.num_fields != 2:
        return False
    key, value = kind.value_type
    return (
        (key.name, value.name) == ("key", "value")
        and key.type in _KEY_KINDS
        and value.type in _VALUE_KINDS
    )


def as_json(column: Any) -> list[str | None]:
    """Return each row's headers as a JSON array of objects; values are as from SQLite's hex()."""
    return [None if row is None else _json(row) for row in column.to_pylist()]


def _json(row: list[dict[str, Any] | None]) -> str:
    return json.dumps([header and header | {"value": _hex(header["value"])} for header in row])


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()


def as_arrays(field: Any, column: Any, type_oid: int) -> Any:
    """Encode an array (not chunked) of headers as PostgreSQL's binary arrays; nulls stay null.

    Args:
        field: The column's field.
        column: Its elements.
        type_oid: The OID of the server's composite type with `FIELDS`.

    Raises:
        UsageError: A key contains NUL.
    """
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype("i8")
    ends = np.concatenate([np.zeros(1, "i8"), np.cumsum(counts)])
    elements = binary_copy.encoded(
        pa.field(field.name, _BINARY), _composites(field, column.flatten())
    )
    joined = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), elements), _NOTHING)
    result = pc.binary_join_element_wise(_heads(counts, type_oid), joined, _NOTHING)
    return pc.if_else(column.is_valid(), result, pa.scalar(None, _BINARY))


def _heads(counts: Any, type_oid: int) -> Any:
    rows = np.empty(len(counts), dtype=(">i4", 5))
    rows[:] = 1, 0, 0, 0, 1
    rows[:, 2], rows[:, 3] = type_oid, counts
    empty = pa.scalar(struct.pack(">3i", 0, 0, type_oid), _BINARY)
    return pc.if_else(pa.array(counts > 0), binary_copy.fixed(rows.reshape(-1).view("V20")), empty)


def _composites(field: Any, headers: Any) -> Any:
    key, value = headers.flatten()
    result = pc.binary_join_element_wise(
        pa.scalar(struct.pack(">2i", 2, _TEXT), _BINARY),
        binary_copy.encoded(pa.field(f"{field.name}.key", key.type), key),
        pa.scalar(struct.pack(">i", _BYTEA), _BINARY),
        binary_copy.encoded(pa.field(f"{field.name}.value", value.type), value),
        _NOTHING,
    )
    return pc.if_else(headers.is_valid(), result, pa.scalar(None, _BINARY))
