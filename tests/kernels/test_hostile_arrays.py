"""An inconsistent Arrow array raises an exception; nothing outside its buffers is read."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import _core, kernels
from tests.kernels.hostile import Exporter, Producer, capsule

NAMES = (b"arrow_schema", b"arrow_array")


def offsets(*numbers: int, width: int = 4) -> bytes:
    return struct.pack(f"={len(numbers)}{'i' if width == 4 else 'q'}", *numbers)


def text(*numbers: int, **fields: Any) -> Producer:
    """A column of strings with six bytes of data and any offsets."""
    fields = {"length": len(numbers) - 1, **fields}
    return Producer(b"u", [None, offsets(*numbers), b"abcdef"], **fields)


def view(size: int, prefix: bytes, buffer: int, start: int) -> bytes:
    return struct.pack("=i4sii", size, prefix, buffer, start)


def views(one: bytes, *, sizes: bytes = offsets(20, width=8), **fields: Any) -> Producer:
    return Producer(b"vu", [None, one, b"x" * 20, sizes], **{"length": 1, **fields})


def test_consistent_array_is_accepted_and_released_once() -> None:
    producer = text(0, 1, 3, 6)
    assert kernels.partitions(producer, 12).to_pylist() == [
        _core.partition_for_key(key, 12) for key in (b"a", b"bc", b"def")
    ]
    assert producer.released == 1
    assert producer.array.release is None
    inline = views(view(3, b"abc\0", 0, 0))
    far = views(view(13, b"xxxx", 0, 7))
    for producer, key in ((inline, b"abc"), (far, b"x" * 13)):
        assert kernels.partitions(producer, 12).to_pylist() == [_core.partition_for_key(key, 12)]


def test_empty_array_needs_no_buffer_contents() -> None:
    for format_, count in ((b"u", 3), (b"Z", 3), (b"vz", 3), (b"l", 2), (b"w:3", 2)):
        producer = Producer(format_, [None] * count, length=0)
        assert kernels.partitions(producer, 12).to_pylist() == []


ARRAYS: dict[str, Callable[[], Any]] = {
    "negative length": lambda: text(0, 1, length=-1),
    "least length": lambda: text(0, 1, length=-(2**63)),
    "greatest length": lambda: text(0, 1, length=2**63 - 1),
    "length no memory has": lambda: Producer(b"l", [None, b"x" * 8], length=2**60),
    "negative offset": lambda: text(0, 1, offset=-1),
    "length and offset overflow": lambda: text(0, 1, length=2**62, offset=2**62),
    "too few buffers": lambda: text(0, 1, n_buffers=2),
    "too many buffers": lambda: text(0, 1, n_buffers=4),
    "negative number of buffers": lambda: text(0, 1, n_buffers=-1),
    "no buffers": lambda: Producer(b"u", None, length=1, n_buffers=3),
    "no offsets": lambda: Producer(b"u", [None, None, b"a"], length=1),
    "no data": lambda: Producer(b"u", [None, offsets(0, 1), None], length=1),
    "no numbers": lambda: Producer(b"l", [None, None], length=1),
    "negative last offset": lambda: text(0, -1),
    "negative first offset": lambda: text(-1, 3),
    "least offset": lambda: text(0, -(2**31)),
    "offsets run backwards": lambda: text(0, 5, 2, 6),
    "offset behind the last": lambda: text(0, 7, 6),
    "large: negative": lambda: Producer(
        b"U", [None, offsets(0, -(2**63), width=8), b"a"], length=1
    ),
    "large: backwards": lambda: Producer(
        b"Z", [None, offsets(0, 2**40, 1, width=8), b"a"], length=2
    ),
    "view of another buffer": lambda: views(view(13, b"xxxx", 1, 0)),
    "view of a negative buffer": lambda: views(view(13, b"xxxx", -1, 0)),
    "view behind the end": lambda: views(view(13, b"xxxx", 0, 8)),
    "view before the start": lambda: views(view(13, b"xxxx", 0, -1)),
    "view of negative size": lambda: views(view(-1, b"xxxx", 0, 0)),
    "view buffer of negative size": lambda: views(
        view(1, b"x", 0, 0), sizes=offsets(-1, width=8)
    ),
    "view: too few buffers": lambda: views(view(1, b"x", 0, 0), n_buffers=2),
    "view: no sizes": lambda: Producer(b"vu", [None, view(1, b"x", 0, 0), b"x", None], length=1),
    "view: missing buffer": lambda: Producer(
        b"vu", [None, view(1, b"x", 0, 0), None, offsets(20, width=8)], length=1
    ),
    "released": lambda: text(0, 1, release=None),
    "released schema": lambda: text(0, 1, schema_fields={"release": None}),
    "no format": lambda: Producer(None, [None, b"x" * 8], length=1),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_an_inconsistent_array_is_a_value_error(name: str) -> None:
    for call in (
        lambda array: kernels.partitions(array, 12),
        kernels.fingerprints,
        lambda array: kernels.fingerprints(array, array),
    ):
        with pytest.raises(ValueError, match="Arrow"):
            call(ARRAYS[name]())


def test_rejected_array_is_released_once() -> None:
    for producer in (text(0, 7, 6), text(0, 1, length=-1)):
        with pytest.raises(ValueError, match="Arrow"):
            kernels.partitions(producer, 12)
        assert producer.released == 1


@pytest.mark.parametrize(
    "format_", [b"", b"\xff", b"w:", b"w:-1", b"w:99999999999", b"+l", b"g", b"d:38,0", b"x" * 99]
)
def test_unsupported_key_type_is_a_type_error(format_: bytes) -> None:
    with pytest.raises(TypeError, match="cannot be hashed"):
        kernels.partitions(Producer(format_, [None, b"x" * 64], length=1), 12)


@pytest.mark.parametrize("value", [None, (1, 2), (1, 2, 3), [], "capsules"])
def test_reply_without_two_capsules_is_rejected(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        kernels.partitions(Exporter(value), 12)


def test_capsules_of_another_name_are_not_read() -> None:
    producer = text(0, 1)
    for names in (NAMES[::-1], (b"arrow_schema", b"arrow_array_stream"), (b"", b"")):
        capsules = (capsule(producer.schema, names[0]), capsule(producer.array, names[1]))
        with pytest.raises(ValueError, match="PyCapsule"):
            kernels.partitions(Exporter(capsules), 12)
    assert producer.released == 0


def test_error_of_a_producer_is_propagated() -> None:
    with pytest.raises(ZeroDivisionError):
        kernels.partitions(Exporter(ZeroDivisionError()), 12)


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 8), min_size=1), st.binary())
def test_any_offsets_give_partitions_or_an_error(numbers: list[int], bits: bytes) -> None:
    # The last offset is the only information about the size of the data, so it must be correct.
    numbers[-1] = 6
    validity = bits.ljust(len(numbers), b"\xff")
    producer = Producer(b"z", [validity, offsets(*numbers), b"abcdef"], length=len(numbers) - 1)
    if sorted(numbers) == numbers and numbers[0] >= 0:
        assert len(kernels.partitions(producer, 12)) == len(numbers) - 1
    else:
        with pytest.raises(ValueError, match="points outside its data"):
            kernels.partitions(producer, 12)
    assert producer.released == 1


@given(st.binary(min_size=16, max_size=16))
def test_any_view_gives_a_partition_or_an_error(one: bytes) -> None:
    producer = views(one)
    try:
        assert len(kernels.partitions(producer, 12)) == 1
    except ValueError as error:
        assert "points outside its data" in str(error)  # noqa: PT017  (either is right)
