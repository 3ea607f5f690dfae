"""Conversion of rows to the columns and types of a Delta table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pykafka_core.errors import LedgerSchemaError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS: Final = {
    "integer": ["is_integer"],
    "decimal": ["is_decimal"],
    "date": ["is_date"],
    "string": ["is_string", "is_large_string", "is_string_view"],
    "binary": ["is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary"],
}
"""Tests of ``pyarrow.types``, by common kind."""


class DeltaRows:
    """The connection of an effect: collects the rows of the next commit."""

    def __init__(self, schema: "pa.Schema | None") -> None:
        self._schema, self._tables = schema, list["pa.Table"]()
        self._open = True

    def append(self, table: "pa.Table") -> None:
        """Add rows to the commit; they are held in memory until then.

        Args:
            table: Rows with the Delta table's columns, in any order, and its types. Integers of
                another size and other encodings of a type (large strings, dictionaries) are
                converted. If there is no Delta table yet, it gets the schema of the first rows.

        Raises:
            LedgerSchemaError: The rows do not fit the Delta table, or contain text that is not
                UTF-8 and could not be read.
            UsageError: The transaction has ended, or ``table`` is not a table.
        """
        import pyarrow as pa

        if not self._open:
            raise UsageError("the ledger's transaction has ended: append inside its with block")
        if not isinstance(table, pa.Table):
            raise UsageError(f"append takes a pyarrow.Table, not {type(table).__name__}")
        if self._schema is None:
            self._schema = table.schema
        self._tables.append(_checked_text(fitted(table, self._schema)))

    def collected(self) -> "pa.Table | None":
        """Return all rows; None if there are none."""
        import pyarrow as pa

        rows = pa.concat_tables(self._tables) if self._tables else None
        return rows if rows is not None and rows.num_rows else None

    def finish(self) -> None:
        """End the transaction; later calls of `append` raise an error."""
        self._open = False


def fitted(rows: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """Return the rows in the columns and types of ``schema``.

    deltalake itself would convert as much as possible, even text to numbers, and would fail the
    commit on a row that it cannot convert.

    Raises:
        LedgerSchemaError: A column is missing, unknown, of another kind, or has values that do not
            fit.
    """
    import pyarrow as pa

    if len(set(rows.column_names)) < rows.num_columns:
        raise LedgerSchemaError(
            f"the rows have two columns of one name, of {', '.join(rows.column_names)}: rename one"
        )
    if sorted(rows.column_names) != sorted(schema.names):
        raise LedgerSchemaError(
            f"the rows have the columns {', '.join(rows.column_names)}, the Delta table has "
            f"{', '.join(schema.names)}: select and rename before the append, or alter the table"
        )
    for field in schema:
        column = rows[field.name]
        if not pa.types.is_null(column.type) and _kind(column.type) != _kind(field.type):
            raise LedgerSchemaError(
                f"column {field.name} is {column.type} in the rows and {field.type} in the Delta table: cast it"
            )
        if column.null_count and not field.nullable:
            raise LedgerSchemaError(f"column {field.name} of the Delta table takes no nulls")
    try:
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise LedgerSchemaError(
            f"the rows do not fit the Delta table's columns: {error}"
        ) from error


def check_partitioning(rows: "pa.Table", columns: Sequence[str]) -> None:
    """Check values of partition columns, which deltalake writes to the log as text.

    In deltalake 1.6.6, negative decimals such as -0.01 are written as text that makes the whole
    table unreadable, and its reader returns binary values escaped.

    Raises:
        LedgerSchemaError: There are such values; nothing is written.
    """
    import pyarrow.compute as pc

    for name in columns:
        column = rows[name]
        if _kind(column.type) == "binary":
            raise LedgerSchemaError(
                f"the Delta table is partitioned by {name}, which is binary, and deltalake does not read such values "
                "back as they were: partition by another column"
            )
        if _kind(column.type) == "decimal":
            least = pc.min(column).as_py()
            if least is not None and least < 0:
                raise LedgerSchemaError(
                    f"the Delta table is partitioned by {name}, and deltalake cannot write negative decimals there "
                    f"({least}): the table could not be read again. Partition by another column"
                )


def _checked_text(rows: "pa.Table") -> "pa.Table":
    """Return the rows; check their text, because Arrow would write invalid UTF-8 to the file."""
    import pyarrow as pa

    for name, column in zip(rows.column_names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise LedgerSchemaError(
                f"column {name} has values that cannot be read again: {error}; store bytes that may not be text in a "
                "binary column"
            ) from error
    return rows


def _kind(type: "pa.DataType") -> object:
    """Return a value that is equal for types between which a checked cast is lossless."""
    from pyarrow import types

    if types.is_dictionary(type):
        return _kind(type.value_type)
    if types.is_struct(type):
        return [(field.name, _kind(field.type)) for field in type]
    if types.is_map(type):
        return "map", _kind(type.key_type), _kind(type.item_type)
    if types.is_list(type) or types.is_large_list(type) or types.is_list_view(type):
        return "list", _kind(type.value_type)
    if types.is_timestamp(type):
        return "timestamp", type.tz is None
    for kind, tests in _KINDS.items():
        if any(getattr(types, test)(type) for test in tests):
            return kind
    return str(type)


def storable(schema: "pa.Schema") -> "pa.Schema":
    """Return the schema of a Delta table for these rows; its timestamps are UTC microseconds.

    Raises:
        LedgerSchemaError: Parquet cannot store a type.
    """
    import pyarrow as pa

    return pa.schema([field.with_type(_storable(field.type)) for field in schema])


def _storable(type: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_dictionary(type):
        return _storable(type.value_type)
    if pa.types.is_struct(type) and not type.num_fields:
        raise LedgerSchemaError("a struct without fields cannot be stored in Parquet: leave it out")
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", type.tz and "UTC")
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_storable(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(_storable(type.key_type), _storable(type.item_type))
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(_storable(type.value_type))
    return type
