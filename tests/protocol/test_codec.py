"""The codec behaves like the code of Kafka's message generator, and rejects bad input."""

import copy
import pickle
import subprocess
import sys

import pytest

from pykafka_core import _core
from pykafka_core.protocol import (
    ProtocolError,
    api_versions,
    decode_message,
    decode_request,
    encode_message,
    message_versions,
)
from pykafka_core.protocol import messages as all_messages
from pykafka_core.protocol.messages import (
    ClientQuotaRecord,
    ConsumerGroupMemberMetadataValue,
    CreateTopicsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    Message,
    MetadataRequest,
)

HEARTBEAT, METADATA, CREATE_TOPICS = 12, 3, 19
TAGS_MAX = 10_000
"""The largest number of tagged fields in one struct."""


# --- classes -------------------------------------------------------------------------------------


def test_every_message_can_be_created_written_and_read_in_every_version() -> None:
    for name in _core.message_names():
        message = getattr(all_messages, name)()
        first, last = message_versions(name)
        for version in range(first, last + 1):
            try:
                data = encode_message(message, version)
            except ProtocolError as error:
                # This version does not allow null, which is the default of a field.
                assert "null" in str(error)  # noqa: PT017
                continue
            assert decode_message(name, version, data) == message, (name, version)


def test_constructors_accept_keywords_and_create_separate_lists() -> None:
    one, other = CreateTopicsRequest(), CreateTopicsRequest()
    one.topics.append(CreateTopicsRequest.CreatableTopic(name="a"))
    assert other.topics == []
    assert one != other
    assert one.timeout_ms == 60000
    with pytest.raises(TypeError):
        CreateTopicsRequest([])  # type: ignore[call-arg]


def test_messages_copy_and_pickle() -> None:
    message = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="a")])
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message


def test_importing_the_protocol_builds_no_class_and_loads_no_numpy() -> None:
    code = (
        "import pykafka_core.protocol as p\n"
        "from pykafka_core.protocol.messages._build import Message\n"
        "import sys; print(len(Message.__subclasses__()), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]


# --- versions ------------------------------------------------------------------------------------


def test_field_that_the_version_lacks_is_read_as_its_default() -> None:
    data = encode_message(JoinGroupRequest(group_id="g"), 0)
    assert decode_message("JoinGroupRequest", 0, data) == JoinGroupRequest(group_id="g")


def test_value_that_the_version_cannot_carry_is_rejected_unless_ignorable() -> None:
    heartbeat = HeartbeatRequest(group_id="g", group_instance_id="i")
    with pytest.raises(ProtocolError, match="group_instance_id"):
        encode_message(heartbeat, 2)
    assert encode_message(heartbeat, 3)
    ignorable = JoinGroupRequest(reason="because")
    assert encode_message(ignorable, 0) == encode_message(JoinGroupRequest(), 0)


def test_null_is_rejected_where_the_version_does_not_allow_it() -> None:
    request = MetadataRequest(topics=None)
    assert encode_message(request, 1) == b"\xff\xff\xff\xff"
    with pytest.raises(ProtocolError, match="topics"):
        encode_message(request, 0)
    with pytest.raises(ProtocolError, match="topics"):
        decode_request(METADATA, 0, b"\xff\xff\xff\xff")


def test_unknown_versions_and_apis_are_rejected() -> None:
    for version in (-1, 5, 32767):
        with pytest.raises(ProtocolError, match="version"):
            decode_request(HEARTBEAT, version, b"")
    for api_key in (-1, 4, 95, 32767):
        with pytest.raises(ProtocolError, match="not supported"):
            decode_request(api_key, 0, b"")
    assert api_versions(22) == (0, 5)
    assert api_versions(4) is None


def test_trailing_bytes_are_ignored() -> None:
    """librdkafka writes the null topic list of Metadata 13 as four bytes, not one."""
    request = decode_request(METADATA, 13, b"\x00\x00\x00\x00" + b"\x01\x00\x00")
    assert request.topics is None  # type: ignore[attr-defined]


# --- tagged fields -------------------------------------------------------------------------------


def test_unknown_tags_are_skipped() -> None:
    plain = encode_message(HeartbeatRequest(group_id="g"), 4)
    tagged = plain[:-1] + b"\x02\x05\x03abc\x07\x00"
    assert decode_request(HEARTBEAT, 4, tagged) == HeartbeatRequest(group_id="g")


def test_tagged_fields_are_written_when_they_are_not_their_default() -> None:
    request = FetchRequest(cluster_id="c")
    data = encode_message(request, 12)
    assert data.endswith(b"\x01\x00\x02\x02c")
    assert decode_message("FetchRequest", 12, data) == request
    assert encode_message(FetchRequest(), 12).endswith(b"\x00")


def test_nullable_struct_starts_with_a_sign_or_as_tagged_field_with_a_varint() -> None:
    request = DescribeTopicPartitionsRequest()
    assert encode_message(request, 0) == b"\x01" + (2000).to_bytes(4, "big") + b"\xff\x00"
    value = ConsumerGroupMemberMetadataValue
    # The default in Kafka's schema is JSON null, not the string "null". Kafka ignores it: the
    # default is an empty struct, and a null value is written.
    assert value().classic_member_metadata is not None
    for classic in (None, value.ClassicMemberMetadata(session_timeout_ms=5)):
        message = value(classic_member_metadata=classic)
        data = encode_message(message, 0)
        assert decode_message("ConsumerGroupMemberMetadataValue", 0, data) == message
    assert encode_message(value(classic_member_metadata=None), 0).endswith(b"\x01\x00\x01\x00")


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02\x01\x00\x00\x00",  # not growing
        b"\x02\x01\x00\x01\x00",  # twice
        b"\xff\xff\xff\xff\x0f",  # 2^32 - 1 tagged fields
        b"\x01\x00\x05a",  # longer than the remaining bytes
        b"\x01\x80\x80\x80\x80\x80\x01\x00",  # a tag of six bytes
    ],
)
def test_bad_tags_are_rejected(tags: bytes) -> None:
    data = encode_message(HeartbeatRequest(group_id="g"), 4)[:-1] + tags
    with pytest.raises(ProtocolError):
        decode_request(HEARTBEAT, 4, data)


def test_a_million_tags_are_skipped() -> None:
    tags = varint(TAGS_MAX) + b"".join(varint(tag) + b"\x00" for tag in range(TAGS_MAX))
    topics = (1 << 20) // TAGS_MAX
    data = varint(topics + 1) + (b"\x02t" + tags) * topics + bytes(4)
    request = decode_request(METADATA, 9, data)
    assert isinstance(request, MetadataRequest)
    assert request.topics is not None
    assert len(request.topics) == topics


def test_more_tags_than_kafka_allows_are_rejected() -> None:
    tags = b"".join(varint(tag) + b"\x00" for tag in range(TAGS_MAX + 1))
    data = encode_message(HeartbeatRequest(group_id="g"), 4)[:-1] + varint(TAGS_MAX + 1) + tags
    with pytest.raises(ProtocolError, match="10001 tagged fields are more than 10000"):
        decode_request(HEARTBEAT, 4, data)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# --- bad values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (HeartbeatRequest(group_id=3), TypeError),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id=b"g"), TypeError),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id=None), ProtocolError),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id="g" * 32768), ProtocolError),
        (HeartbeatRequest(group_id="\ud800"), ValueError),
        (HeartbeatRequest(generation_id="1"), TypeError),  # type: ignore[arg-type]
        (HeartbeatRequest(generation_id=1.0), TypeError),  # type: ignore[arg-type]
        (HeartbeatRequest(generation_id=2**31), ProtocolError),
        (HeartbeatRequest(generation_id=2**80), ProtocolError),
        (CreateTopicsRequest(topics="abc"), TypeError),  # type: ignore[arg-type]
        (CreateTopicsRequest(topics=[None]), TypeError),  # type: ignore[list-item]
        (CreateTopicsRequest(topics=[HeartbeatRequest()]), TypeError),  # type: ignore[list-item]
        (CreateTopicsRequest(validate_only=1), TypeError),  # type: ignore[arg-type]
        (FetchRequest(topics=[FetchRequest.FetchTopic(topic_id=b"short")]), ProtocolError),
    ],
)
def test_values_of_the_wrong_type_or_range_are_rejected(
    message: Message, error: type[Exception]
) -> None:
    version = message_versions(type(message).__name__)[1]
    with pytest.raises(error):
        encode_message(message, version)


def test_object_that_is_not_a_message_is_rejected() -> None:
    class HeartbeatRequest(Message):
        __slots__ = ("group_id",)

    for thing in (None, 1, object(), HeartbeatRequest(), CreateTopicsRequest.CreatableTopic()):
        with pytest.raises((TypeError, ProtocolError)):
            encode_message(thing, 0)  # type: ignore[arg-type]


def test_floats_accept_ints_without_calling_their_methods() -> None:
    class Odd(int):
        def __float__(self) -> float:
            raise AssertionError

    record = ClientQuotaRecord(value=Odd(3))
    assert decode_message("ClientQuotaRecord", 0, encode_message(record, 0)) == ClientQuotaRecord(
        value=3.0
    )


def test_deleted_fields_are_rejected() -> None:
    message = HeartbeatRequest()
    del message.group_id
    with pytest.raises(AttributeError, match="group_id"):
        encode_message(message, 0)


# --- bad bytes (contract/replication.md#attack-6, #attack-7)
# ----------------------------------------


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (4, b"\x7f\xff\xff\xff"),  # an array of 2^31 - 1
        (4, b"\x80\x00\x00\x00"),  # a negative count
        (7, b"\xff\xff\xff\xff\x0f"),  # a compact length of 2^32 - 2
        (7, b"\xff\xff\xff\xff\xff\x0f"),  # a varint of six bytes
        (7, b"\xff" * 11),  # a varint of eleven bytes
        (4, b"\x00\x00\x00\x01\x7f\xff"),  # a string beyond the end
    ],
)
def test_lengths_are_compared_with_the_remaining_bytes_before_any_allocation(
    version: int, body: bytes
) -> None:
    with pytest.raises(ProtocolError):
        decode_request(CREATE_TOPICS, version, body)


def test_longer_list_than_kafka_allows_is_rejected() -> None:
    count = 1_000_001
    with pytest.raises(ProtocolError, match="a list of 1000001 elements is longer than 1000000"):
        decode_request(METADATA, 4, count.to_bytes(4, "big") + bytes(2 * count))


def test_more_elements_than_the_cap_in_all_lists_are_rejected() -> None:
    brokers = (600_000).to_bytes(4, "big") + bytes(4 * 600_000)
    assignments = b"\x00\x00\x00\x02" + (bytes(4) + brokers) * 2
    topic = b"\x00\x01t" + b"\xff" * 6 + assignments + bytes(4)
    with pytest.raises(ProtocolError, match="array elements"):
        decode_request(CREATE_TOPICS, 2, b"\x00\x00\x00\x01" + topic + bytes(5))


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"a\x00b", b"..", b"a/b", b"x" * 250, "ключ".encode()]
)
def test_any_name_is_decoded_and_left_to_the_check_of_names(name: bytes) -> None:
    body = b"\x00\x00\x00\x01" + len(name).to_bytes(2, "big") + name + b"\x00"
    request = decode_request(METADATA, 4, body)
    assert isinstance(request, MetadataRequest)
    assert request.topics is not None
    assert request.topics[0].name == name.decode(errors="replace")


def test_every_truncation_of_a_message_is_an_error() -> None:
    message = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name="a", configs=[CreateTopicsRequest.CreatableTopicConfig(name="k", value="v")]
            )
        ]
    )
    for version in range(2, 8):
        data = encode_message(message, version)
        for end in range(len(data)):
            with pytest.raises(ProtocolError):
                decode_request(CREATE_TOPICS, version, data[:end])
