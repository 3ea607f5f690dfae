"""The closed world of APIs: each API in ApiVersions has a handler and a test, and no other API has
one.
"""

from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from pykafka_core.handlers.outcome import LogCommands, MetadataWrite, ShardCalls
from pykafka_core.handlers.registry import (
    API_VERSIONS,
    CONTROLLER_BY_KEY,
    CONTROLLER_ROWS,
    QUORUM_ROWS,
    ROWS,
    Owner,
    Row,
    handler_of,
)
from pykafka_core.protocol import api_versions

# Kafka 4.4.0 on a broker listener (contract/kafka.md#1), without the APIs that Rust handles.
KAFKA_4_4_0 = {
    8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6),
    16: (0, 5), 17: (0, 1), 19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 5), 24: (0, 5), 25: (0, 4),
    26: (0, 5), 27: (1, 2), 28: (0, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2),
    34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3),
    42: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1),
    50: (0, 0), 51: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0),
    66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1), 76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2),
    80: (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1), 88: (0, 1),
    89: (0, 1), 90: (0, 1), 91: (0, 0), 92: (0, 0), 93: (0, 0), 94: (0, 0),
}  # fmt: skip

NOT_BUILT = {
    "groups of Kafka Streams' own protocol": {88, 89, 93},
    "share groups": {76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92},
}

# Kafka 4.4.0 on a controller listener: APIs that a broker listener also has, and all others.
ON_BOTH = {
    1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 55, 57,
    60, 64, 80, 81, 94,
}  # fmt: skip
ON_CONTROLLERS_ALONE = {
    52: (0, 2), 53: (0, 1), 54: (0, 1), 56: (2, 3), 58: (0, 0), 59: (0, 1), 62: (0, 4), 63: (0, 2),
    67: (0, 0), 70: (0, 0), 73: (0, 0), 82: (0, 0),
}  # fmt: skip

NOT_BUILT_ON_CONTROLLERS = {
    "what the listener itself answers": {18},
    "forwarded requests": {58},
    "refusals on plain listeners": {17, 36, 38, 39, 40, 41},
    "credentials, which brokers describe": {50},
}

DECLARED_EXCEPTIONS = {
    10: "FindCoordinator answers COORDINATOR_NOT_AVAILABLE for share groups",
    51: "AlterUserScramCredentials has bounds, and refuses an empty password by name",
    49: "AlterClientQuotas sets byte rates of users and client ids, and refuses all other limits by name",
    27: "WriteTxnMarkers of others than brokers aborts what is open in this node's logs, and refuses all else",
}


WITH_DIRECTORY_IDS = {1: (16, 18), 52: (1, 2), 53: (1, 1), 54: (1, 1), 59: (1, 1)}
"""For the requests between quorum replicas, only the versions with directory ids are implemented
(KIP-853)."""
ALL_ROWS = sorted({*ROWS, *CONTROLLER_ROWS})


RESPONDED_BY_THE_CONTROLLER = {55, 80, 81}
"""APIs that need the leader of the quorum, but whose handlers propose no records."""


def test_offered_apis_are_those_of_kafka_4_4_0_that_are_built() -> None:
    not_built = set().union(*NOT_BUILT.values())
    expected = {key: KAFKA_4_4_0[key] for key in KAFKA_4_4_0 if key not in not_built}
    assert dict(API_VERSIONS) == expected


def test_controller_apis_are_those_of_kafka_4_4_0_that_are_built() -> None:
    not_built = set().union(*NOT_BUILT_ON_CONTROLLERS.values())
    expected = ON_BOTH | ON_CONTROLLERS_ALONE.keys()
    built = {row.api_key: row.versions for row in (*CONTROLLER_ROWS, *QUORUM_ROWS)}
    assert built.keys() == expected - not_built
    assert not_built <= expected
    for key, versions in built.items():
        expected_versions = ON_CONTROLLERS_ALONE.get(key, KAFKA_4_4_0.get(key))
        assert versions == WITH_DIRECTORY_IDS.get(key, expected_versions)


def test_clients_are_not_offered_apis_between_brokers_and_controllers() -> None:
    assert not API_VERSIONS.keys() & ON_CONTROLLERS_ALONE.keys()
    for row in ROWS:
        assert CONTROLLER_BY_KEY.get(row.api_key, row) is row


def test_declared_exceptions_are_offered_apis() -> None:
    assert DECLARED_EXCEPTIONS.keys() <= API_VERSIONS.keys()


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row.name)
def test_every_row_has_a_handler_and_a_test(row: Row) -> None:
    assert handler_of(row.api_key) is import_module(f"pykafka_core.handlers.{row.module}").handle
    assert list(Path(__file__).parent.rglob(f"test_{row.name}.py"))


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row.name)
def test_handler_returns_only_results_that_its_owner_supports(row: Row) -> None:
    handler = handler_of(row.api_key)
    may_return = get_type_hints(handler, vars(import_module(handler.__module__)))["return"]
    names = str(may_return)
    proposes = row.owner in (Owner.CONTROLLER, Owner.ANY_NODE)
    may_propose = proposes and row.api_key not in RESPONDED_BY_THE_CONTROLLER
    assert (MetadataWrite.__qualname__ in names or "Outcome" in names) == may_propose
    assert LogCommands.__qualname__ not in names or row.owner is Owner.LOCAL or may_propose
    assert ShardCalls.__qualname__ in names or row.owner is not Owner.SHARD


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row.name)
def test_every_offered_version_can_be_encoded(row: Row) -> None:
    codable = api_versions(row.api_key)
    assert codable is not None
    assert codable[0] <= row.versions[0] <= row.versions[1] <= codable[1]


def test_rows_are_sorted_by_key() -> None:
    for rows in (ROWS, CONTROLLER_ROWS):
        assert [row.api_key for row in rows] == sorted({row.api_key for row in rows})
