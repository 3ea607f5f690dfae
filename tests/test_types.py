import pytest

from pykafka_core.types import METADATA_TOPIC_ID, id_bytes, id_text, random_id


def test_an_id_prints_as_kafka_prints_it() -> None:
    assert id_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert id_bytes("PiNoeOXmQxe1tAMLO2R12w").hex() == "3e236878e5e64317b5b4030b3b6475db"


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA!", "A" * 44])
def test_invalid_topic_id_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        id_bytes(text)


def test_new_id_is_neither_reserved_nor_like_an_option() -> None:
    dash = b"\xf8" + bytes(15)
    assert id_text(dash).startswith("-")
    given = iter([bytes(16), bytes(15) + b"\x63", dash, b"a" * 16])
    assert random_id(lambda size: next(given)[:size]) == b"a" * 16
