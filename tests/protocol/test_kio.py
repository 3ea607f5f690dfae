"""Differential test: our codec and kio, a codec of another project, agree on bytes and values.

kio has generated classes for each version, so its bytes show which fields a version has and in
which order. The values are generated from the annotations of its classes. We decode kio's bytes
and compare each field; kio decodes our bytes, and must return the original value. The test covers
every pair of a message and a version that both codecs support.
"""

import datetime
import uuid
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from io import BytesIO
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from pykafka_core.protocol import decode_message, encode_message, message_versions
from pykafka_core.protocol.messages import Message

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def durations(low: int, high: int) -> st.SearchStrategy[datetime.timedelta]:
    return st.integers(low, high).map(lambda number: number * MILLISECOND)


STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "int8": integers(8),
    "int16": integers(16),
    "int32": integers(32),
    "int64": integers(64),
    "uint16": st.integers(0, 2**16 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
    "uuid": st.uuids(),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": durations(-(2**31), 2**31 - 1),
    "timedelta_i64": durations(-(2**40), 2**40),
    "datetime_i64": durations(0, 2**42).map(lambda duration: EPOCH + duration),
}


RENAMED = {
    ("TxnOffsetCommitRequest", "generation_id"): "generation_id_or_member_epoch",
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag"): "acceptable_recovery_lag_legacy",
}
"""Fields that Kafka 4.4 renamed, by message and kio's name, which is the name in Kafka 4.2."""


@cache
def instances(entity: type) -> st.SearchStrategy[Any]:
    """Objects of one class of kio."""
    hints = get_type_hints(entity)
    return st.builds(entity, **{f.name: values(hints[f.name], f) for f in fields(entity)})


def values(hint: Any, field: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is UnionType or NoneType in get_args(hint):
        (inner,) = (option for option in get_args(hint) if option is not NoneType)
        return st.none() | values(inner, field)
    if get_origin(hint) is tuple:
        element = get_args(hint)[0]
        return st.lists(values(element, field), max_size=3).map(tuple)
    if is_dataclass(hint):
        return instances(hint)  # type: ignore[arg-type]
    return STRATEGIES[field.metadata["kafka_type"]]


def assert_same(ours: Any, theirs: Any) -> None:
    """Compare by value; kio has special types for times, UUIDs and error codes."""
    if is_dataclass(theirs):
        for field in fields(theirs):
            name = field.name.rstrip("_")  # kio appends "_" to the names that Python has
            name = RENAMED.get((type(ours).__name__, name), name)
            name = name if hasattr(ours, name) else f"{name}_ms"
            assert_same(getattr(ours, name), getattr(theirs, field.name))
    elif isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif theirs is None:
        assert ours in (None, bytes(16), -1)  # null, the zero UUID, or no time
    else:
        assert ours == plain(theirs)


def plain(value: Any) -> Any:
    match value:
        case ErrorCode():
            return value.value
        case datetime.timedelta():
            return value // MILLISECOND
        case datetime.datetime():
            return (value - EPOCH) // MILLISECOND
        case uuid.UUID():
            return value.bytes
    return value


def pairs() -> Iterator[tuple[str, int, str]]:
    """Every message and version that both codecs support, with the path of kio's class."""
    for api in api_key_map.values():
        for version, paths in schema_name_map[api].items():
            for path in paths.values():
                name = path.rpartition(":")[2]
                first, last = message_versions(name)
                if first <= version <= last:
                    yield name, version, path


PAIRS = list(pairs())


def test_kio_has_nearly_all_message_versions() -> None:
    assert len(PAIRS) > 500


@pytest.mark.parametrize(
    ("name", "version", "path"), PAIRS, ids=[f"{name}-{version}" for name, version, _ in PAIRS]
)
def test_kio_reads_our_messages_and_our_codec_those_of_kio(
    name: str, version: int, path: str
) -> None:
    entity = resolve_name(path)
    write, read = entity_writer(entity), entity_reader(entity)

    @settings(
        max_examples=4,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(instances(entity))
    def agree(theirs: Any) -> None:
        buffer = BytesIO()
        write(buffer, theirs)
        data = buffer.getvalue()
        ours = decode_message(name, version, data)
        assert isinstance(ours, Message)
        assert_same(ours, theirs)
        written = encode_message(ours, version)
        assert read(written, 0)[0] == theirs

    agree()
