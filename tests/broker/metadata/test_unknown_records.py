"""A metadata record of a newer version stops the start; the message has file, offset and type."""

import re
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core._core import build_batch
from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY
from pykafka_core.errors import MetadataError
from pykafka_core.log import Log
from pykafka_core.metadata.records.codec import decode_batches, encode
from pykafka_core.protocol.messages import NoOpRecord, TopicRecord

UNKNOWN_TYPE = b"\x01\xc8\x01\x00"
"""A record with frame version 1, type 200 and version 0."""
UNKNOWN_VERSION = b"\x01\x02\x09"
"""A TopicRecord of version 9."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    with Broker(data) as broker:
        broker.create_topic("orders")
    return data


def append(data: Path, *values: bytes) -> int:
    """Append values to the metadata log as one batch; return the first offset."""
    with Log.open(data / METADATA_DIRECTORY) as log:
        return log.append([(None, value) for value in values]).first_offset


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (UNKNOWN_TYPE, "unknown metadata record type 200"),
        (UNKNOWN_VERSION, "TopicRecord"),
        (b"\x02\x02\x00", "unknown frame version 2"),
        (b"", ""),
        (encode(TopicRecord(name="../outside", topic_id=bytes(16))), "does not allow"),
    ],
)
def test_unknown_record_stops_the_start_with_file_and_offset(
    data: Path, value: bytes, reason: str
) -> None:
    offset = append(data, encode(NoOpRecord()), value) + 1
    file = data / METADATA_DIRECTORY / f"{0:020}.log"
    before = file.read_bytes()
    with pytest.raises(MetadataError) as caught:
        Broker(data)
    text = str(caught.value)
    assert text.startswith(f"{file}: ")
    assert re.search(rf"\brecord at offset {offset}\b.*{reason}", text), text
    assert file.read_bytes() == before, "something was written behind what was not understood"


def test_error_names_the_segment_that_holds_the_record(data: Path) -> None:
    small = {"internal.metadata.log.segment.bytes": "1000"}
    with Broker(data, config=small) as broker:
        for number in range(10):
            broker.create_topic(f"topic-{number}")
    newest = max((data / METADATA_DIRECTORY).glob("*.log"))
    assert newest.name != f"{0:020}.log"
    append(data, UNKNOWN_TYPE)
    with pytest.raises(MetadataError, match=re.escape(str(newest))):
        Broker(data)


def test_damaged_batch_is_rejected() -> None:
    batch = bytearray(build_batch([(None, encode(NoOpRecord()))], base_offset=5))
    batch[-1] ^= 1
    with pytest.raises(MetadataError, match="batch at 5 has a wrong CRC"):
        decode_batches(bytes(batch))
