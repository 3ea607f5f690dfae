"""Columns of every type that the kernels accept, each with the bytes of its rows."""

from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = (pa.string(), pa.large_string(), pa.string_view())
BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())


class Given(NamedTuple):
    column: Any
    plain: list[bytes | None]
    """The bytes of each row that must be hashed; None for null."""


@st.composite
def _cut(draw: st.DrawFn, values: list[Any], plain: list[bytes | None], type_: Any) -> Given:
    """Make the column, or a slice of it, whose offsets and bitmaps do not start at 0."""
    start = draw(st.integers(0, len(values)))
    end = draw(st.integers(start, len(values)))
    if draw(st.booleans()):
        start, end = 0, len(values)
    return Given(pa.array(values, type_)[start:end], plain[start:end])


@st.composite
def texts(draw: st.DrawFn, type_: Any) -> Given:
    values = draw(st.lists(st.none() | st.text(max_size=40)))
    return draw(_cut(values, [None if v is None else v.encode() for v in values], type_))


@st.composite
def binaries(draw: st.DrawFn, type_: Any) -> Given:
    values = draw(st.lists(st.none() | st.binary(max_size=40)))
    return draw(_cut(values, values, type_))


@st.composite
def fixed(draw: st.DrawFn) -> Given:
    width = draw(st.integers(0, 40))
    values = draw(st.lists(st.none() | st.binary(min_size=width, max_size=width)))
    return draw(_cut(values, values, pa.binary(width)))


@st.composite
def integers(draw: st.DrawFn, type_: Any, *, signed: bool = True) -> Given:
    size = type_.bit_width // 8
    low, high = (-(1 << 8 * size - 1), 1 << 8 * size - 1) if signed else (0, 1 << 8 * size)
    values = draw(st.lists(st.none() | st.integers(low, high - 1)))
    plain = [None if v is None else v.to_bytes(size, "big", signed=signed) for v in values]
    return draw(_cut(values, plain, type_))


def keys() -> st.SearchStrategy[Given]:
    """Columns that `partitions` accepts."""
    numbers = [integers(type_) for type_ in (pa.int32(), pa.int64())]
    return st.one_of(*map(texts, TEXTS), *map(binaries, BINARIES), fixed(), *numbers)


def ids() -> st.SearchStrategy[Given]:
    """Columns that `fingerprints` accepts."""
    signed = [pa.int8(), pa.int16(), pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.date32()]
    signed += [pa.time32("ms"), pa.time64("us")]
    unsigned = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    numbers = [_reinterpreted(type_) for type_ in signed]
    return st.one_of(keys(), *numbers, *(integers(type_, signed=False) for type_ in unsigned))


def _reinterpreted(type_: Any) -> st.SearchStrategy[Given]:
    """Dates and times of any number, also of numbers that are not a calendar date."""
    number = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type_.bit_width]
    return integers(number).map(lambda given: Given(given.column.view(type_), given.plain))
