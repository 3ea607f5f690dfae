import struct
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import kernels
from tests.kernels import columns

SEEDS = st.integers(0, 2**32 - 1)


def framed(row: tuple[bytes | None, ...]) -> bytes:
    return b"".join(
        struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
        for value in row
    )


@given(columns.ids(), SEEDS)
def test_one_column_gives_the_digests_of_its_bytes(column: columns.Given, seed: int) -> None:
    found = kernels.fingerprints(column.column, seed=seed)
    found.validate(full=True)
    assert found.type == pa.binary(16)
    assert found.to_pylist() == [
        None if value is None else mmh3.mmh3_x64_128_digest(value, seed) for value in column.plain
    ]


@given(st.lists(columns.ids(), min_size=2, max_size=4), SEEDS)
def test_many_columns_give_the_digests_of_their_framed_rows(
    parts: list[columns.Given], seed: int
) -> None:
    rows = min(len(part.plain) for part in parts)
    found = kernels.fingerprints(*(part.column[:rows] for part in parts), seed=seed)
    assert found.null_count == 0
    assert found.to_pylist() == [
        mmh3.mmh3_x64_128_digest(framed(row), seed)
        for row in zip(*(part.plain[:rows] for part in parts), strict=True)
    ]


def test_objects_and_chunks_give_the_same_as_a_column() -> None:
    values: list[str | None] = ["a", None, "", "bcd"]
    column = pa.array(values)
    assert kernels.fingerprints(values, seed=3).equals(kernels.fingerprints(column, seed=3))
    chunks = pa.chunked_array([column[:1], column[1:]])
    assert kernels.fingerprints(chunks, column).equals(kernels.fingerprints(column, column))


def test_rows_with_different_boundaries_order_or_nulls_differ() -> None:
    rows: list[tuple[str | None, str | None]] = [
        ("ab", "c"), ("a", "bc"), ("c", "ab"), ("abc", ""), ("", "abc"), ("abc", None), (None, "abc")
    ]  # fmt: skip
    first, second = ([row[at] for row in rows] for at in (0, 1))
    assert len(set(kernels.fingerprints(first, second).to_pylist())) == len(rows)


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array([True]), pa.array([["a"]])])
def test_columns_of_other_types_are_rejected(column: Any) -> None:
    with pytest.raises(TypeError, match="cast it to string, binary, int32 or int64, an integer"):
        kernels.fingerprints(["a"], column)


def test_columns_of_different_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match="columns of 1 and 2 rows"):
        kernels.fingerprints(["a"], ["b", "c"])


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_out_of_range_is_rejected(seed: int) -> None:
    with pytest.raises(ValueError, match="a seed is 0 to 4294967295"):
        kernels.fingerprints(["a"], seed=seed)


def test_no_columns_are_rejected() -> None:
    with pytest.raises(ValueError, match="1 column at least"):
        kernels.fingerprints()
