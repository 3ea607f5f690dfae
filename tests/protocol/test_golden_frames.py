from pykafka_core.protocol import decode_request, decode_response, encode_message
from tests.protocol.frames import frames


def test_every_recorded_frame_is_encoded_to_the_same_bytes() -> None:
    count = 0
    for frame in frames():
        decode = decode_request if frame.is_request else decode_response
        message = decode(frame.api_key, frame.version, frame.body)
        wanted = frame.body[: len(frame.body) - frame.left_over]
        assert encode_message(message, frame.version) == wanted, message
        count += 1
    assert count == 1298


def test_objects_are_equal_to_themselves_after_a_round_trip() -> None:
    for frame in list(frames())[::7]:
        decode = decode_request if frame.is_request else decode_response
        message = decode(frame.api_key, frame.version, frame.body)
        again = decode(frame.api_key, frame.version, encode_message(message, frame.version))
        assert again == message
        assert repr(again) == repr(message)
