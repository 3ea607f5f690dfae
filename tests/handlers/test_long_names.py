"""Names in requests may be long; an error message that repeats one must fit into the response."""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import pykafka_core.handlers
from pykafka_core.errors import KafkaError
from pykafka_core.handlers.registry import ROWS, Row
from pykafka_core.protocol import ProtocolError, encode_request
from pykafka_core.protocol.messages import FindCoordinatorRequest, Message
from tests.support.every_api import REQUESTS, Content, request
from tests.support.simulated.broker import SimulatedBroker

NAME_LENGTH_MAX = 32_767
"""Maximum length of a string in bytes, in every version, as in Kafka."""

KINDS = (2, 4, 8, 16, 32, 99)
"""Kinds of resources, and a kind that does not exist."""


def everywhere(name: str) -> Content:
    return Content(
        topics=[(name, [0])],
        names=[name],
        group=name,
        transactional_id=name,
        member=name,
        members=[name],
        text=name,
        optional=name,
        states=[name],
    )


def new_topics(plain: Content, name: str) -> Iterator[Content]:
    yield plain
    for settings in ([(name, "1")], [(name, None)] * 2, [("retention.ms", name)]):
        yield replace(plain, topics=[("t", [])], settings=[*settings])


def twice(plain: Content, _: str) -> Iterator[Content]:
    topics = plain.listed
    yield from (plain, replace(plain, topics=topics * 2, names=plain.names * 2))


def resources(plain: Content, name: str) -> Iterator[Content]:
    for kind in KINDS:
        for optional in (None, name):
            yield replace(plain, kind=kind, optional=optional)


def changes(plain: Content, name: str) -> Iterator[Content]:
    pairs = [
        (name, name),
        (name, None),
        *((of, name) for of in ("retention.ms", "log.retention.ms", "match")),
    ]
    for kind in KINDS:
        for resource in (name, "1"):
            for pair in pairs:
                yield replace(plain, kind=kind, names=[resource], settings=[pair])


def operations(plain: Content, name: str) -> Iterator[Content]:
    for change in changes(plain, name):
        yield from (replace(change, operation=operation) for operation in (0, 1, 2, 3, 99))


def groups(plain: Content, _: str) -> Iterator[Content]:
    yield from (replace(plain, group="group"), plain)


def quotas(plain: Content, name: str) -> Iterator[Content]:
    for entity, key in (("user", "producer_byte_rate"), ("user", name), (name, name)):
        for count in (1, 2):
            yield replace(plain, entity=entity, settings=[(key, "1")] * count)


def credentials(plain: Content, name: str) -> Iterator[Content]:
    yield from (replace(plain, operation=1), *twice(plain, name))


VARIATIONS: dict[str, Callable[[Content, str], Iterable[Content]]] = {
    "find_coordinator": lambda c, _: (replace(c, kind=kind) for kind in (0, 1, 2, 99)),
    "create_topics": new_topics,
    "delete_topics": twice,
    "create_partitions": twice,
    "describe_configs": resources,
    "alter_configs": changes,
    "incremental_alter_configs": operations,
    "describe_cluster": lambda c, _: [replace(c, kind=99)],
    "offset_commit": groups,
    "offset_delete": groups,
    "join_group": lambda c, _: [replace(c, member=""), c],
    "consumer_group_heartbeat": lambda c, _: (replace(c, epoch=epoch) for epoch in (0, -1, 1)),
    "alter_partition_reassignments": lambda c, _: (
        replace(c, replicas=replicas) for replicas in (None, [1], [7])
    ),
    "alter_replica_log_dirs": lambda c, name: [c, replace(c, text="/" + name[:100])],
    "describe_client_quotas": lambda c, name: [c, replace(c, entity=name)],
    "alter_client_quotas": quotas,
    "describe_user_scram_credentials": twice,
    "alter_user_scram_credentials": credentials,
}
"""The contents of the requests of an API that has more than one."""


def requests(api: str, name: str, version: int) -> Iterator[Message]:
    plain = everywhere(name)
    variations = VARIATIONS.get(api)
    for content in variations(plain, name) if variations else [plain]:
        yield request(api, content, version)


def error_messages(response: object) -> Iterator[str]:
    """Yield the error messages of a response and of all its parts."""
    if isinstance(response, list):
        for one in response:
            yield from error_messages(one)
    if isinstance(response, Message):
        for name in response.__slots__:
            value = getattr(response, name)
            if name == "error_message" and value is not None:
                yield value
            yield from error_messages(value)


def test_longer_string_cannot_be_encoded() -> None:
    longer = FindCoordinatorRequest(coordinator_keys=["n" * (NAME_LENGTH_MAX + 1)])
    with pytest.raises(ProtocolError):
        encode_request(longer, 6)


def test_every_api_has_requests() -> None:
    assert REQUESTS.keys() == {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_error_messages_are_truncated(row: Row, broker: SimulatedBroker) -> None:
    for version in range(row.versions[0], row.versions[1] + 1):
        for name in ("n" * NAME_LENGTH_MAX, "😀" * (NAME_LENGTH_MAX // 4)):
            for asked in requests(row.name, name, version):
                for message in error_messages(broker.ask(asked, version)):
                    assert len(message) <= KafkaError.MESSAGE_LENGTH_MAX


def test_error_messages_are_those_of_errors() -> None:
    """A text that a handler creates without an error class would not be truncated."""
    texts = set()
    for path in Path(*pykafka_core.handlers.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "error_message":
                texts.add(ast.unparse(node.value))
            if isinstance(node, ast.Assign) and "error_message" in ast.unparse(node.targets[0]):
                texts.add(ast.unparse(node.value))
    assert texts == {
        "None",
        "(error.code, str(error))",
        "UnknownTopicOrPartitionError.text",
        "str(error)",
        "str(error_of(code)())",
        "str(error) if error else None",
        "found.error_message",
        "None if isinstance(error, NoReassignmentInProgressError) else str(error)",
        # The text of a number, or a constant.
        "error_message",
        "text",
        "'NONE'",
        "''",
        "ALONE",
        "'No Authorizer is configured.'",
        "'SaslAuthenticate request received after successful authentication'",
        "'No Authorizer is configured on the broker'",
    }
