import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import _core, _murmur2
from tests.pyx import twins

# Hashes from Kafka's own test, and of keys that the contract names.
VECTORS = {
    "": 275646681,
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize(("key", "hash_"), VECTORS.items())
def test_every_form_gives_the_hash_of_kafka(key: str, hash_: int) -> None:
    assert _murmur2.murmur2(key) == _murmur2.murmur2(key.encode()) == hash_
    assert _core.murmur2(key.encode()) == twins.murmur2(key.encode()) == hash_


@given(st.lists(st.none() | st.binary() | st.text()), st.integers(1, 2**31 - 1))
def test_all_keys_at_once_give_the_same_as_the_python_twin(
    keys: list[bytes | str | None], partitions: int
) -> None:
    plain = [key.encode() if isinstance(key, str) else key for key in keys]
    hashes, found = array.array("i", [7] * len(keys)), array.array("i", [7] * len(keys))
    _murmur2.murmur2_into(keys, hashes)
    _murmur2.partitions_into(keys, partitions, found)
    assert list(hashes) == [0 if key is None else twins.murmur2(key) for key in plain]
    assert list(found) == [-1 if key is None else twins.partition(key, partitions) for key in plain]
    for key in filter(None, plain):
        assert _murmur2.partition(key, partitions) == _core.partition_for_key(key, partitions)


def test_numpy_arrays_of_objects_are_accepted() -> None:
    keys = np.array([b"a", "b", None], dtype=object)
    out = np.zeros(3, dtype=np.int32)
    _murmur2.partitions_into(keys, 6, out)  # type: ignore[arg-type]
    assert out.tolist() == [twins.partition(b"a", 6), twins.partition(b"b", 6), -1]


def test_invalid_keys_and_sizes_are_rejected() -> None:
    with pytest.raises(TypeError, match="not int"):
        _murmur2.murmur2_into([1], array.array("i", [0]))  # type: ignore[list-item]
    with pytest.raises(ValueError, match="2 keys and room for 1"):
        _murmur2.murmur2_into([b"", b""], array.array("i", [0]))
    for partition in (_murmur2.partition, _core.partition_for_key):
        with pytest.raises(ValueError, match="1 partition at least"):
            partition(b"", 0)
    with pytest.raises(ValueError, match="1 partition at least"):
        _murmur2.partitions_into([b""], 0, array.array("i", [0]))
