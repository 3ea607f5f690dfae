"""The error table is a closed world: every code of Kafka 4.4, each its own class."""

import re
from pathlib import Path

import pytest

from pykafka_core import errors

RUST_TABLE = Path(__file__).resolve().parents[1] / "rust/broker/src/kafka_error.rs"
RUST_ROW = re.compile(r'^    (\w+) = (-?\d+), "(\w+)", (true|false);$', re.MULTILINE)


def kafka_classes() -> list[type[errors.KafkaError]]:
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type)
        and issubclass(value, errors.KafkaError)
        and value is not errors.KafkaError
    ]


def test_codes_are_those_of_kafka_4_4() -> None:
    assert errors.codes() == [-1, *range(1, 137)]


def test_each_code_has_its_own_class_named_after_it() -> None:
    classes = kafka_classes()
    assert sorted(cls.code for cls in classes) == errors.codes()
    for cls in classes:
        words = cls.name.removesuffix("_EXCEPTION").removesuffix("_ERROR").split("_")
        assert cls.__name__ == "".join(word.capitalize() for word in words) + "Error"
        assert errors.error_of(cls.code) is cls


def test_the_table_in_rust_has_the_same_codes_names_and_retriable_flags() -> None:
    rust = {
        (int(code), name, retriable == "true")
        for _, code, name, retriable in RUST_ROW.findall(RUST_TABLE.read_text())
    }
    python = {(cls.code, cls.name, cls.retriable) for cls in kafka_classes()}
    assert rust == python | {(errors.NONE, "NONE", False)}


def test_errors_that_need_fresh_metadata_are_retriable() -> None:
    assert all(cls.retriable for cls in kafka_classes() if cls.refresh_metadata)


@pytest.mark.parametrize(
    ("cls", "retriable", "refresh_metadata"),
    [
        (errors.NotLeaderOrFollowerError, True, True),
        (errors.RequestTimedOutError, True, False),
        (errors.UnknownTopicIdError, True, True),
        (errors.TopicAlreadyExistsError, False, False),
    ],
)
def test_flags_are_those_of_kafka(
    cls: type[errors.KafkaError], retriable: bool, refresh_metadata: bool
) -> None:
    assert (cls.retriable, cls.refresh_metadata) == (retriable, refresh_metadata)


def test_a_message_replaces_the_general_text() -> None:
    assert str(errors.InvalidTopicError()) == errors.InvalidTopicError.text
    assert str(errors.InvalidTopicError("no such name")) == "no such name"


def test_an_unknown_code_is_an_unknown_server_error() -> None:
    assert errors.error_of(4711) is errors.UnknownServerError
