import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import kernels
from tests.kernels import columns
from tests.pyx import twins

COUNTS = st.integers(1, 2**31 - 1)


def fnv1a(key: bytes) -> int:
    """Return the FNV-1a hash as librdkafka uses it: the absolute value of a signed number."""
    value = 0x811C9DC5
    for byte in key:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return min(value, 2**32 - value)


TWINS: dict[kernels.Partitioner, Callable[[bytes], int]] = {
    "murmur2": lambda key: twins.murmur2(key) & 0x7FFFFFFF,
    "crc32": zlib.crc32,
    "fnv1a": fnv1a,
}


def expected(
    plain: list[bytes | None], count: int, partitioner: kernels.Partitioner
) -> list[int | None]:
    return [None if key is None else TWINS[partitioner](key) % count for key in plain]


@given(columns.keys(), COUNTS, st.sampled_from(kernels.PARTITIONERS))
def test_column_of_any_type_gives_the_same_as_the_python_twin(
    keys: columns.Given, count: int, partitioner: kernels.Partitioner
) -> None:
    found = kernels.partitions(keys.column, count, partitioner)
    found.validate(full=True)
    assert found.type == pa.int32()
    assert found.to_pylist() == expected(keys.plain, count, partitioner)


@given(st.lists(st.none() | st.binary() | st.text()), COUNTS, st.sampled_from(kernels.PARTITIONERS))
def test_objects_give_the_same_as_a_column(
    keys: list[bytes | str | None], count: int, partitioner: kernels.Partitioner
) -> None:
    plain = [key.encode() if isinstance(key, str) else key for key in keys]
    boxed = np.empty(len(keys), dtype=object)
    boxed[:] = keys
    for given_keys in (keys, tuple(keys), boxed):
        found = kernels.partitions(given_keys, count, partitioner)
        assert found.to_pylist() == expected(plain, count, partitioner)


@given(st.lists(st.lists(st.none() | st.binary()), max_size=4))
def test_chunks_give_the_same_as_one_array(chunks: list[list[bytes | None]]) -> None:
    column = pa.chunked_array(chunks, pa.binary())
    flat = [key for chunk in chunks for key in chunk]
    assert kernels.partitions(column, 12).to_pylist() == expected(flat, 12, "murmur2")


def test_pandas_and_numpy_columns_are_accepted() -> None:
    texts: list[Any] = ["a", None, "", "é"]
    plain = [b"a", None, b"", "é".encode()]
    for column in (pd.Series(texts, dtype="str"), pd.Series(texts, dtype=object)):
        assert kernels.partitions(column, 7).to_pylist() == expected(plain, 7, "murmur2")
    for dtype, size in (("int32", 4), ("int64", 8)):
        numbers = np.arange(-9, 9, dtype=dtype)[::2]
        big_endian: list[bytes | None] = [
            int(n).to_bytes(size, "big", signed=True) for n in numbers
        ]
        for integers in (numbers, pd.Series(numbers)):
            assert kernels.partitions(integers, 7).to_pylist() == expected(big_endian, 7, "murmur2")


def test_a_null_key_has_no_partition_and_an_empty_one_has() -> None:
    assert kernels.partitions([None, b""], 1000).to_pylist() == [None, 275646681 % 1000]


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (pa.array([1.5]), "double"),
        (pa.array([True]), "bool"),
        (pa.array([1], pa.int16()), "int16"),
        (pa.array([1], pa.uint64()), "uint64"),
        (pa.array([None]), "null"),
        (pa.array([["a"]]), "list"),
        (pa.array([{"a": 1}]), "struct"),
        (pa.array(["a"]).dictionary_encode(), "dictionary"),
        (pa.array([1], pa.timestamp("ms")), "timestamp"),
        (np.array([1.0]), "double"),
        (pa.record_batch({"key": ["a"]}), "struct"),
    ],
)
def test_keys_of_another_type_are_rejected_by_its_name(keys: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"type {found} cannot .* cast it to string, binary, int32"):
        kernels.partitions(keys, 3)


@pytest.mark.parametrize("keys", [[1], [1.5], [b"a", 2], [bytearray(b"a")], [True]])
def test_unsupported_key_objects_are_rejected(keys: Any) -> None:
    with pytest.raises(TypeError, match="a key is bytes, str or None, not "):
        kernels.partitions(keys, 3)


@pytest.mark.parametrize("key", ["abc", b"abc", b"", bytearray(b"abc")])
def test_bare_key_is_not_a_column(key: Any) -> None:
    with pytest.raises(TypeError, match=f"this {type(key).__name__} is one: put it into a list"):
        kernels.partitions(key, 7)
    with pytest.raises(TypeError, match="put it into a list"):
        kernels.fingerprints(["a"], key)


def test_lone_surrogate_is_rejected() -> None:
    with pytest.raises(UnicodeEncodeError):
        kernels.partitions(["\ud800"], 3)


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_impossible_number_of_partitions_is_rejected(count: int) -> None:
    with pytest.raises(ValueError, match=f"num_partitions is 1 to 2147483647, not {count}"):
        kernels.partitions([b"a"], count)


@pytest.mark.parametrize("count", ["3", 3.0, True, None])
def test_a_number_of_partitions_is_an_int(count: Any) -> None:
    with pytest.raises(TypeError, match="num_partitions is an int, not "):
        kernels.partitions([b"a"], count)


def test_unknown_partitioner_is_rejected() -> None:
    name: Any = "murmur3"
    with pytest.raises(ValueError, match="'murmur3'; there are murmur2, crc32, fnv1a"):
        kernels.partitions([b"a"], 3, name)
