from dataclasses import dataclass
from typing import Any

import pytest

from pykafka_core.errors import MessageIdError
from pykafka_core.idempotent import ID_SIZE_MAX, header_id, message_id
from pykafka_core.idempotent.ids import ids_of


@dataclass
class Record:
    headers_: Any

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 17

    def headers(self) -> Any:
        return self.headers_


def test_last_header_of_the_name_is_the_id() -> None:
    headers = [("id", b"1"), ("other", b"2"), ("id", b"3")]
    assert ids_of([Record(headers)], header_id("id")) == [b"3"]


@pytest.mark.parametrize("headers", [None, [], [("ID", b"1")], [("id", None)], [("id", b"")]])
def test_a_record_without_the_header_is_named(headers: Any) -> None:
    with pytest.raises(MessageIdError, match="offset 17 of orders-3"):
        ids_of([Record([("id", b"1")]), Record(headers)], header_id("id"))


def test_an_id_is_bytes_or_text() -> None:
    assert message_id("é") == "é".encode()
    assert message_id(b"\0" * ID_SIZE_MAX) == b"\0" * ID_SIZE_MAX


@pytest.mark.parametrize(
    "value", ["", b"", "é" * 513, b"x" * 1025, 5, None, ["a"], bytearray(b"x")]
)
def test_ids_of_other_types_are_rejected(value: object) -> None:
    with pytest.raises(MessageIdError):
        message_id(value)


def test_text_without_a_utf8_form_is_rejected_with_its_place() -> None:
    with pytest.raises(MessageIdError, match=r"offset 17 of orders-3: .* UTF-8"):
        ids_of([Record([])], lambda record: "\ud800")


def test_failed_id_function_names_the_record() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        ids_of([Record([])], lambda record: 1 // 0)
    assert "record at offset 17 of orders-3" in raised.value.__notes__[0]
