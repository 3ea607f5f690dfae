"""Messages that are read and written in parts equal those that are read and written at once."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from pykafka_core._core import MessageEncoder, RequestDecoder
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.protocol import (
    Message,
    ProtocolError,
    decode_request,
    decode_request_in_parts,
    decode_response,
    encode_message,
)
from pykafka_core.protocol.messages import (
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesResponse,
)
from tests.protocol.frames import frames

T = TypeVar("T")
DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 20, 44


def in_parts(part: Callable[[int], T | None], fields_max: int) -> tuple[T, int]:
    """Return the final result and the number of parts."""
    parts = 1
    while (whole := part(fields_max)) is None:
        parts += 1
    return whole, parts


@pytest.mark.parametrize("fields_max", [1, 7, 10**9])
def test_every_recorded_request_is_read_the_same_in_parts(fields_max: int) -> None:
    for frame in frames():
        if frame.is_request:
            decoder = RequestDecoder(frame.api_key, frame.version, frame.body)
            message, _ = in_parts(decoder.read, fields_max)
            assert message == decode_request(frame.api_key, frame.version, frame.body)


@pytest.mark.parametrize("fields_max", [1, 7, 10**9])
def test_every_recorded_message_is_written_the_same_in_parts(fields_max: int) -> None:
    for frame in frames():
        decode = decode_request if frame.is_request else decode_response
        message = decode(frame.api_key, frame.version, frame.body)
        encoder = MessageEncoder(message, frame.version)
        written, _ = in_parts(encoder.write, fields_max)
        assert bytes(written) == encode_message(message, frame.version)


def nested(resources: int, configs: int) -> Message:
    """A request with this number of resources, and this number of configs in each resource."""
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="1")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_name="t", configs=[config] * configs
    )
    return IncrementalAlterConfigsRequest(resources=[resource] * resources)


@pytest.mark.parametrize(("resources", "configs"), [(1, 20_000), (20_000, 1), (100, 200)])
def test_no_part_is_longer_than_requested_at_any_nesting(resources: int, configs: int) -> None:
    message = nested(resources, configs)
    encoded, parts = in_parts(MessageEncoder(message, 1).write, 100)
    assert parts >= resources * configs * 3 / 100
    decoder = RequestDecoder(INCREMENTAL_ALTER_CONFIGS, 1, bytes(encoded))
    again, parts = in_parts(decoder.read, 100)
    assert parts >= resources * configs * 3 / 100
    assert again == message


def test_lists_of_strings_are_split_into_parts() -> None:
    message = DeleteTopicsRequest(topic_names=[f"t{n}" for n in range(10_000)])
    encoded, parts = in_parts(MessageEncoder(message, 1).write, 100)
    assert parts >= 100
    again, parts = in_parts(RequestDecoder(DELETE_TOPICS, 1, bytes(encoded)).read, 100)
    assert (again, parts >= 100) == (message, True)


def test_part_ends_after_a_large_field() -> None:
    message = DeleteTopicsRequest(topic_names=["t" * 20_000] * 10)
    written, parts = in_parts(MessageEncoder(message, 1).write, 10**9)
    assert (bytes(written), parts) == (encode_message(message, 1), 11)
    assert in_parts(MessageEncoder(message, 1).measure, 10**9) == (len(bytes(written)), 11)


def test_bad_bytes_are_rejected_the_same_in_parts() -> None:
    body = encode_message(nested(2, 3), 1)
    for size in range(len(body)):
        with pytest.raises(ProtocolError) as whole:
            decode_request(INCREMENTAL_ALTER_CONFIGS, 1, body[:size])
        with pytest.raises(ProtocolError) as parted:
            in_parts(RequestDecoder(INCREMENTAL_ALTER_CONFIGS, 1, body[:size]).read, 1)
        assert str(parted.value) == str(whole.value)
    for key, version in ((9999, 0), (INCREMENTAL_ALTER_CONFIGS, 99)):
        with pytest.raises(ProtocolError):
            RequestDecoder(key, version, b"")


def test_request_with_too_many_elements_is_rejected_before_they_are_created() -> None:
    most = encode_message(DeleteTopicsRequest(topic_names=["t"] * 100_000), 1)
    message, _ = in_parts(RequestDecoder(DELETE_TOPICS, 1, most).read, 4096)
    assert len(message.topic_names) == 100_000  # type: ignore[attr-defined]
    more = encode_message(DeleteTopicsRequest(topic_names=["t"] * 100_001), 1)
    with pytest.raises(ProtocolError, match="more than 100000 elements"):
        RequestDecoder(DELETE_TOPICS, 1, more).read(1)


def test_bad_values_are_rejected_the_same_in_parts() -> None:
    message = nested(1, 1)
    message.resources[0].resource_name = None  # type: ignore[attr-defined]
    with pytest.raises(ProtocolError):
        in_parts(MessageEncoder(message, 1).write, 1)
    with pytest.raises(TypeError):
        MessageEncoder(object(), 1)  # type: ignore[arg-type]


def test_list_that_shrinks_between_parts_is_an_error() -> None:
    resource = ListConfigResourcesResponse.ConfigResource(resource_name="t", resource_type=2)
    message = ListConfigResourcesResponse(config_resources=[resource] * 10)
    encoder = MessageEncoder(message, 1)
    assert encoder.write(5) is None
    message.config_resources.clear()
    with pytest.raises(ProtocolError, match="shorter"):
        in_parts(encoder.write, 1)


def test_parts_are_generators_for_the_control_thread() -> None:
    message = nested(10_000, 1)
    body = encode_message(message, 1)
    assert run_to_end(decode_request_in_parts(INCREMENTAL_ALTER_CONFIGS, 1, body)) == message
    assert len(list(decode_request_in_parts(INCREMENTAL_ALTER_CONFIGS, 1, body))) > 5
