"""Our codec decodes the records of Kafka's internal topics as Kafka's own classes do."""

import base64
import json
import re
import uuid
from collections import Counter
from typing import Any

import pytest

from pykafka_core.protocol import (
    ProtocolError,
    decode_metadata_record,
    decode_metadata_records,
    decode_record_key,
    decode_record_value,
    encode_metadata_record,
    encode_record_key,
    encode_record_value,
)
from pykafka_core.protocol.coordinator_records import GROUP_KEYS, SHARE_KEYS, TRANSACTION_KEYS
from pykafka_core.protocol.messages import Message, TopicRecord
from tests.protocol.frames import GOLDEN

KINDS = {
    "__consumer_offsets": GROUP_KEYS,
    "__transaction_state": TRANSACTION_KEYS,
    "__share_group_state": SHARE_KEYS,
}
ROWS = [json.loads(line) for line in (GOLDEN / "stored_records.jsonl").read_text().splitlines()]


def snake_case(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def assert_same(found: object, wanted: Any) -> None:
    """Compare with Kafka's JSON, which omits tagged fields that have their default value."""
    if isinstance(found, Message):
        for name, value in wanted.items():
            assert_same(getattr(found, snake_case(name)), value)
    elif isinstance(found, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(found, bytes):
        assert found in (base64.b64decode(wanted), uuid_bytes(wanted))
    else:
        assert found == wanted


def uuid_bytes(text: str) -> bytes | None:
    try:
        return uuid.UUID(text).bytes
    except ValueError:
        return None


@pytest.mark.parametrize("topic", KINDS)
def test_coordinator_records_read_as_kafka_reads_them_and_write_back(topic: str) -> None:
    rows = [row for row in ROWS if row["topic"] == topic]
    assert rows
    for row in rows:
        raw = base64.b64decode(row["key_bytes"])
        key = decode_record_key(KINDS[topic], raw)
        assert type(key).__name__ == row["key_type"]
        assert_same(key, row["key"])
        assert encode_record_key(KINDS[topic], key) == raw
        if row["value"] is None:
            continue
        raw = base64.b64decode(row["value_bytes"])
        value = decode_record_value(row["key_type"].removesuffix("Key") + "Value", raw)
        assert_same(value, row["value"])
        assert encode_record_value(value, row["value_version"]) == raw


def test_metadata_log_reads_and_every_record_writes_back() -> None:
    records = decode_metadata_records((GOLDEN / "cluster_metadata.log").read_bytes())
    offsets = [offset for offset, _ in records]
    assert offsets == sorted(set(offsets))
    kinds = Counter(type(record).__name__ for _, record in records)
    assert kinds["TopicRecord"] >= 30
    assert {"PartitionRecord", "RegisterBrokerRecord", "FeatureLevelRecord"} <= set(kinds)
    for _, record in records:
        written = [encode_metadata_record(record, version) for version in versions_of(record)]
        assert any(decode_metadata_record(value) == record for value in written)


def versions_of(record: Message) -> list[int]:
    """Return the versions in which the record can be encoded."""
    carrying = []
    for version in range(5):
        try:
            encode_metadata_record(record, version)
        except ProtocolError:
            continue
        carrying.append(version)
    return carrying


def test_metadata_frame_is_three_varints_and_the_message() -> None:
    record = TopicRecord(name="a", topic_id=bytes(range(16)))
    value = encode_metadata_record(record, 0)
    assert value == bytes([1, 2, 0, 2]) + b"a" + bytes(range(16)) + b"\0"
    assert decode_metadata_record(value) == record


@pytest.mark.parametrize("value", [b"", b"\x00\x02\x00", b"\x02\x02\x00", b"\x01\x7f\x00"])
def test_metadata_frames_of_unknown_form_or_type_are_rejected(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_metadata_record(value)


def test_damaged_metadata_batches_are_rejected() -> None:
    data = bytearray((GOLDEN / "cluster_metadata.log").read_bytes())
    data[-1] ^= 1
    with pytest.raises(ProtocolError, match="CRC"):
        decode_metadata_records(bytes(data))


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\x09", b"\x7f\xff", b"\xff\xff"])
def test_unknown_kinds_of_coordinator_records_are_rejected(key: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_record_key(GROUP_KEYS, key)
