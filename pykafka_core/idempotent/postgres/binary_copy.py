"""Encodes Arrow columns for PostgreSQL's binary COPY, without a Python object per value.

A row is its number of fields, then the length and value of each field, all big-endian; a null is
just the length -1. So each column becomes an Arrow binary array of (length + value), the columns
are joined row by row, and the data buffer of the result is the stream. For the layout see
https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".

PostgreSQL's types: binary is bytea, strings are text, int8 and int16 smallint, int32, uint8 and
uint16 integer, int64 and uint32 bigint, float32 real, float64 double precision, date32 date,
decimal128 numeric, timestamps with a time zone timestamptz and without one timestamp. Other types,
and values that PostgreSQL cannot represent, are rejected with the name of the column.

This module imports pyarrow and numpy: import it only where rows are in Arrow format.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pykafka_core.errors import UsageError
from pykafka_core.idempotent.postgres import numeric

CHUNK_BYTES: Final = 4 << 20
"""Maximum size of rows that are encoded at a time; a larger row is encoded alone."""
ROWS_MAX: Final = 1 << 16

_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
_NULL: Final = pa.scalar(b"\xff\xff\xff\xff", pa.large_binary())
_NOTHING: Final = pa.scalar(b"", pa.large_binary())

# By Arrow type: the PostgreSQL type and the wire format of a value.
_FIXED: Final = {
    pa.bool_(): ("boolean", "u1"),
    pa.int8(): ("smallint", ">i2"),
    pa.int16(): ("smallint", ">i2"),
    pa.int32(): ("integer", ">i4"),
    pa.uint8(): ("integer", ">i4"),
    pa.uint16(): ("integer", ">i4"),
    pa.int64(): ("bigint", ">i8"),
    pa.uint32(): ("bigint", ">i8"),
    pa.float32(): ("real", ">f4"),
    pa.float64(): ("double precision", ">f8"),
    pa.date32(): ("date", ">i4"),
}
_BYTES: Final = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
_TEXT: Final = (types.is_string, types.is_large_string)

# PostgreSQL's epoch is 2000-01-01, Arrow's is 1970-01-01.
_EPOCH_DAYS: Final = 10_957
_EPOCH_US: Final = _EPOCH_DAYS * 86_400_000_000


def postgres_type(field: Any) -> str:
    """Return the PostgreSQL type for an Arrow field.

    Raises:
        UsageError: There is none; the message names the column and gives advice.
    """
    kind = field.type
    if kind in _FIXED:
        return _FIXED[kind][0]
    if any(is_kind(kind) for is_kind in _BYTES):
        return "bytea"
    if any(is_kind(kind) for is_kind in _TEXT):
        return "text"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return "numeric"
    raise no_form(field, "PostgreSQL")


def no_form(field: Any, database: str) -> UsageError:
    """Return an error that rejects a column by name, with advice."""
    advice = (
        "turn it into text (to_json) or into a column per field"
        if types.is_nested(field.type)
        else "cast it to a type that has one, such as a string"
    )
    return UsageError(
        f"column {field.name!r} of type {field.type} has no form in {database} here; leave it out or {advice}"
    )


def copy_stream(rows: Any) -> Iterator[memoryview]:
    """Encode a ``pyarrow.RecordBatchReader`` for COPY … FROM STDIN (FORMAT binary), in pieces.

    The target's columns must have the types of `postgres_type`, in the rows' order.

    Raises:
        UsageError: Unsupported column type, text with NUL, or a time that is out of range or more
            precise than a microsecond.
    """
    for field in rows.schema:
        postgres_type(field)
    yield memoryview(_HEADER)
    for batch in rows:
        for piece in slices(batch):
            yield values_of(_joined(piece))
    yield memoryview(_TRAILER)


def slices(rows: Any) -> Iterator[Any]:
    """Split an array or batch to at most `ROWS_MAX` rows and (if several rows) `CHUNK_BYTES`."""
    count = len(rows)
    if count > ROWS_MAX or (count > 1 and rows.nbytes > CHUNK_BYTES):
        yield from slices(rows.slice(0, count // 2))
        yield from slices(rows.slice(count // 2))
    elif count:
        yield rows


def _joined(batch: Any) -> Any:
    count = pa.scalar(batch.num_columns.to_bytes(2, "big"), pa.large_binary())
    fields = [
        encoded(field, column) for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pc.binary_join_element_wise(count, *fields, _NOTHING)


def encoded(field: Any, column: Any) -> Any:
    """Encode an array (not chunked) as length and value of each element: large binary, no nulls."""
    kind = field.type
    if types.is_decimal128(kind):
        values = numeric.encoded(column)
        result = _with_length(values, column)
    elif kind in _FIXED or types.is_timestamp(kind):
        result = _with_length(_numbers(field, column), column)
    else:
        binary = column.cast(pa.large_binary())
        if any(is_kind(kind) for is_kind in _TEXT):
            _check_text(field, column, binary)
        lengths = pc.binary_length(binary).fill_null(0).to_numpy()
        result = pc.binary_join_element_wise(fixed(lengths.astype(">i4")), binary, _NOTHING)
    return result.fill_null(_NULL) if column.null_count else result


def _check_text(field: Any, column: Any, binary: Any) -> None:
    # Scanning all bytes at once takes a hundredth of the time of a search in each value. Bytes
    # under a null may have any value, so a hit is confirmed by a search.
    every_byte = np.frombuffer(values_of(binary), "u1")
    if every_byte.min(initial=1) or not pc.any(pc.match_substring(column, "\0")).as_py():
        return
    raise UsageError(
        f"column {field.name!r} has text with a NUL, which PostgreSQL's text cannot hold; "
        "remove it or cast the column to binary"
    )


def _numbers(field: Any, column: Any) -> Any:
    kind = field.type
    if types.is_timestamp(kind):
        return (_microseconds(field, column) - _EPOCH_US).astype(">i8")
    if kind == pa.date32():
        days = column.cast(pa.int32()).fill_null(0).to_numpy().astype("i8") - _EPOCH_DAYS
        _check_not_below(field, days, -(2**31))
        return days.astype(">i4")
    filler = pa.scalar(0, pa.int8()).cast(kind)
    return column.fill_null(filler).to_numpy(zero_copy_only=False).astype(_FIXED[kind][1])


def _microseconds(field: Any, column: Any) -> Any:
    try:
        exact = column.cast(pa.timestamp("us", field.type.tz))
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"column {field.name!r}: PostgreSQL keeps microseconds of 64 bits, and these would change; "
            f"cast the column to timestamp('us'): {error}"
        ) from None
    numbers = exact.cast(pa.int64()).fill_null(0).to_numpy()
    _check_not_below(field, numbers, -(2**63) + _EPOCH_US)
    return numbers


def _check_not_below(field: Any, numbers: Any, bound: int) -> None:
    """Check the lower bound: it is PostgreSQL's -infinity, and less would wrap around.

    The server checks all other bounds.
    """
    if len(numbers) and int(numbers.min()) <= bound:
        raise UsageError(f"column {field.name!r} has a time before PostgreSQL's first; filter it")


def _with_length(values: Any, column: Any) -> Any:
    """Prefix values of one width with the length; null where the column is null."""
    width = values.dtype.itemsize
    rows = np.empty(len(values), dtype=[("length", ">i4"), ("value", values.dtype)])
    rows["length"], rows["value"] = width, values
    result = fixed(rows)
    if not column.null_count:
        return result
    return pc.if_else(column.is_valid(), result, pa.scalar(None, pa.large_binary()))


def fixed(rows: Any) -> Any:
    """Return the elements' bytes of a numpy array as a large binary array."""
    kind = pa.binary(rows.dtype.itemsize)
    array = pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])
    return array.cast(pa.large_binary())


def values_of(array: Any) -> memoryview:
    """Return the concatenated elements of a large binary array, without a copy."""
    if len(array) == 0:
        return memoryview(b"")
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, "i8")[array.offset : array.offset + len(array) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
