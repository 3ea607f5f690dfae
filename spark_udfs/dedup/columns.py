"""Validation of the caller's arguments on the driver, before anything runs."""

from collections.abc import Sequence, Set
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "BUCKETS_MAX",
    "Ids",
    "check_buckets",
    "check_ids",
    "check_names",
    "check_order",
    "check_seed",
    "check_type",
    "horizon_in_ms",
    "placed",
    "type_names",
]

Ids: TypeAlias = "str | Column | Sequence[str | Column]"
"""One column or several, by name or as expressions."""

BUCKETS_MAX: Final = 4096
SEED_MAX: Final = 2**32 - 1
_ID_TYPES: Final = (
    StringType,
    BinaryType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    DateType,
    TimestampType,
    TimestampNTZType,
)
_UNITS_MS: Final = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}


def check_ids(df: "DataFrame", ids: Ids) -> list[Column]:
    """Return the columns of an id.

    Raises:
        ValueError: There are no columns.
        TypeError: A type without a canonical byte form, such as floats and structs; a string with a
            collation; or an expression without exactly one value for each row.
        pyspark.errors.AnalysisException: A column does not exist; the text lists the existing ones.
    """
    columns = as_columns("ids", ids)
    _check_one_value_a_row(df, "ids", columns)
    for column, kind in zip(columns, types_of(df, columns), strict=True):
        if not isinstance(kind, _ID_TYPES):
            raise TypeError(
                f"an id cannot be of type {kind.simpleString()} ({column!r}): it is a string, binary, integer, "
                "date or timestamp; cast other types to string"
            )
        _check_collation("ids", column, kind)
    return columns


def check_order(df: "DataFrame", order_by: Ids) -> list[Column]:
    """Return the columns that define which row is first.

    Raises:
        ValueError: There are no columns.
        TypeError: A type without an order; a string with a collation; or an expression without
            exactly one value for each row.
        pyspark.errors.AnalysisException: A column does not exist.
    """
    columns = as_columns("order_by", order_by)
    _check_one_value_a_row(df, "order_by", columns)
    for column, kind in zip(columns, types_of(df, columns), strict=True):
        if not isinstance(kind, AtomicType) or isinstance(kind, VariantType):
            raise TypeError(f"order_by cannot be of type {kind.simpleString()} ({column!r})")
        _check_collation("order_by", column, kind)
    return columns


def _check_collation(what: str, column: Column, kind: DataType) -> None:
    """Raise a TypeError for a string with a collation, because strings are compared as bytes."""
    if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
        raise TypeError(
            f"{what} compares strings as bytes, and {column!r} has the collation {kind.collation}: cast it to string, "
            "or give an expression of it, such as lower(...).cast('string')"
        )


def _check_one_value_a_row(df: "DataFrame", what: str, columns: Sequence[Column]) -> None:
    """Raise a TypeError for a sort direction, an aggregate, or an expression that generates rows.

    Spark itself would report them only when the query runs, or return another number of rows.
    """
    rows = df._jdf.queryExecution().analyzed().nodeName()
    for column in columns:
        plan = df.select(column)._jdf.queryExecution().analyzed()
        if _has_direction(plan.expressions()):
            raise TypeError(
                f"{what} takes no directions ({column!r}): for the greatest first say keep='last', or negate numbers, "
                "such as -F.col('offset')"
            )
        if plan.nodeName() == "Aggregate":
            raise TypeError(f"{what} needs one value for each row, and {column!r} is an aggregate")
        if plan.children().head().nodeName() == "Generate" != rows:
            raise TypeError(
                f"{what} needs one value for each row, and {column!r} makes several: select it first"
            )


def _has_direction(expressions: Any) -> bool:
    """Return whether these expressions, a Scala sequence, contain a sort order at any depth."""
    return any(
        one.nodeName() == "SortOrder" or _has_direction(one.children())
        for one in map(expressions.apply, range(expressions.size()))
    )


def check_type(
    df: "DataFrame", what: str, column: str | Column, kinds: Sequence[type[DataType]], kind: str
) -> Column:
    """Return one column of a type in ``kinds``; ``what`` and ``kind`` describe both in errors.

    Raises:
        TypeError: It has another type.
        pyspark.errors.AnalysisException: The column does not exist.
    """
    if not isinstance(column, str | Column):
        raise TypeError(f"{what} is a column or the name of one, not {type(column).__name__}")
    (checked,) = as_columns(what, column)
    (found,) = types_of(df, [checked])
    if not isinstance(found, tuple(kinds)):
        raise TypeError(f"{what} is {kind}, not {found.simpleString()}")
    return checked


def check_names(df: "DataFrame") -> None:
    """Raise a ValueError if two columns have the same name, which would be ambiguous later."""
    names = df.columns
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"several columns have the same name: rename {', '.join(repeated)}")


def check_buckets(buckets: int) -> None:
    """Raise a TypeError or ValueError unless ``buckets`` is 1 to 4096."""
    if not isinstance(buckets, int) or isinstance(buckets, bool):
        raise TypeError(f"buckets is an int, not {type(buckets).__name__}")
    if not 1 <= buckets <= BUCKETS_MAX:
        raise ValueError(f"buckets is 1 to {BUCKETS_MAX}, not {buckets}")


def check_seed(seed: int) -> None:
    """Raise a TypeError or ValueError unless ``seed`` is an unsigned 32-bit integer."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"a seed is an int, not {type(seed).__name__}")
    if not 0 <= seed <= SEED_MAX:
        raise ValueError(f"a seed is 0 to {SEED_MAX}, not {seed}")


def horizon_in_ms(horizon: "timedelta | str | None") -> int | None:
    """Return a time span, such as ``"10 minutes"``, in milliseconds, rounded down.

    Raises:
        TypeError, ValueError: Neither a timedelta nor such a string, or less than a millisecond.
    """
    if horizon is None:
        return None
    if isinstance(horizon, str):
        count, _, unit = horizon.strip().partition(" ")
        unit_ms = _UNITS_MS.get(unit.strip().removesuffix("s"))
        if not (count.isascii() and count.isdecimal()) or unit_ms is None:
            raise ValueError(
                f"horizon is like '10 minutes' (days to milliseconds), not {horizon!r}"
            )
        span = int(count) * unit_ms
    elif isinstance(horizon, timedelta):
        span = horizon // timedelta(milliseconds=1)
    else:
        raise TypeError(f"horizon is a timedelta or a str, not {type(horizon).__name__}")
    if not 1 <= span < 2**53:
        raise ValueError(f"horizon is at least a millisecond, and no age of the world: {horizon!r}")
    return span


def as_columns(what: str, columns: Ids) -> list[Column]:
    """Return ``columns`` as a list; ``what`` names them in errors."""
    if isinstance(columns, Set):
        raise TypeError(f"{what} has an order, and a set has another at each start: give a list")
    if not isinstance(columns, str | Column | Sequence) or isinstance(columns, bytes | bytearray):
        raise TypeError(
            f"{what} is a column, the name of one, or a list of these, not {type(columns).__name__}"
        )
    listed = [columns] if isinstance(columns, str | Column) else list(columns)
    if not listed:
        raise ValueError(f"{what} needs 1 column at least")
    for column in listed:
        if not isinstance(column, str | Column):
            raise TypeError(f"{what} holds names and columns, not {type(column).__name__}")
    return [F.col(column) if isinstance(column, str) else column for column in listed]


def placed(df: "DataFrame", ids: Ids) -> tuple[list[int], list[Column]]:
    """Return the index of each id column, and the ids to append because ``df`` lacks them.

    Appended columns have indices after those of ``df``. Only a plain name is treated as a column of
    ``df``; names with dots or quotes may resolve to something else.
    """
    names, width = df.columns, len(df.columns)
    at: list[int] = []
    more: list[Column] = []
    for one in [ids] if isinstance(ids, str | Column) else ids:
        if isinstance(one, str) and one in names and "." not in one and "`" not in one:
            at.append(names.index(one))
        else:
            at.append(width + len(more))
            more += as_columns("ids", one)
    return at, more


def types_of(df: "DataFrame", columns: Sequence[Column]) -> list[DataType]:
    """Return the types of ``columns`` of ``df``."""
    named = [column.alias(f"column{at}") for at, column in enumerate(columns)]
    return [field.dataType for field in df.select(*named).schema.fields]


def type_names(df: "DataFrame", columns: Sequence[Column]) -> list[str]:
    """Return the types of ``columns`` of ``df``, as formatted by Spark."""
    return [kind.simpleString() for kind in types_of(df, columns)]
