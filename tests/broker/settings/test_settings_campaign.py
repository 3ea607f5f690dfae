"""Random changes of settings over the wire, each sequence followed by a restart.

No control thread ends, each directory can be opened again, and the committed settings exist after
the restart. ``make settings`` runs 10,000 sequences.
"""

import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.config import ConfigType, Scope, Setting, settings
from pykafka_core.protocol.messages import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from tests.support.wire import Connection

SEQUENCES = int(os.environ.get("SETTINGS_SEQUENCES", "25"))
SEED = int(os.environ.get("SETTINGS_SEED", "0"))
SEQUENCES_PER_DIRECTORY = 50
REFUSALS = (40, 42)
"""INVALID_CONFIG and INVALID_REQUEST; UNKNOWN_SERVER_ERROR never occurs."""

TARGETS = (
    (RESOURCE_BROKER, "", Scope.BROKER),
    (RESOURCE_BROKER, "1", Scope.BROKER),
    (RESOURCE_BROKER, "01", Scope.BROKER),
    (RESOURCE_TOPIC, "t", Scope.TOPIC),
    (RESOURCE_TOPIC, "u", Scope.TOPIC),
    (RESOURCE_GROUP, "g", Scope.GROUP),
)
ALTERABLE = {
    scope: [row for row in settings(scope).values() if not row.read_only] for scope in Scope
}
BITS = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}


def value_for(row: Setting, rng: random.Random) -> str:
    """Return a value that is often valid, often at a limit, and sometimes nonsense."""
    if row.type in BITS:
        top = 1 << BITS[row.type]
        edges = [0, 1, -1, -2, top - 1, top, -top, rng.randrange(top), rng.randrange(10_000)]
        return str(rng.choice([*edges, 1 << rng.randrange(BITS[row.type])]))
    words = [word.strip("[](),") for word in str(row.validator or "").split()]
    known = [row.default or "", "true", "false", "0.5", "-1", "delete", "delete,delete", "*"]
    return rng.choice([*known, *words, "", "text", "\0", "ü" * 300, "9" * 400])


def changes_of(scope: Scope, rng: random.Random) -> list[tuple[str, int, str | None]]:
    rows = rng.sample(ALTERABLE[scope], rng.randint(1, 3))
    found: list[tuple[str, int, str | None]] = []
    for row in rows:
        operation = rng.choice([0, 0, 0, 0, 1, 2, 3])
        found.append((row.name, operation, None if operation == 1 else value_for(row, rng)))
    if rng.random() < 0.05:
        found.append(("from.the.future", 0, "1"))
    return found


def alter(connection: Connection, rng: random.Random) -> Iterator[int]:
    """Send one request for one to three resources; yield the error codes."""
    resources = []
    for kind, name, scope in rng.sample(TARGETS, rng.randint(1, 3)):
        configs = [
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=setting, config_operation=operation, value=value
            )
            for setting, operation, value in changes_of(scope, rng)
        ]
        resources.append(
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=configs
            )
        )
    response = connection.ask(44, 1, IncrementalAlterConfigsRequest(resources=resources))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return (response.error_code for response in response.responses)


def describe(connection: Connection) -> None:
    resources = [
        DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name)
        for kind, name, _ in TARGETS
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    response = connection.ask(32, 4, request)
    assert {result.error_code for result in response.results} == {0}


def run_sequence(data: Path, rng: random.Random, before: object) -> object:
    """Open, compare with ``before``, alter, close; return the committed settings."""
    with Broker(data, durability="os") as broker:
        if before is None:
            broker.create_topic("t")
            broker.create_topic("u")
        else:
            assert broker._image().configs == before
        with Connection(broker.bootstrap_servers) as connection:
            for _ in range(rng.randint(1, 4)):
                assert {*alter(connection, rng)} <= {0, *REFUSALS}
            describe(connection)
        assert broker.healthy
        return broker._image().configs


def test_random_changes_never_end_a_broker_or_close_a_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)  # every start reports the ignored settings
    committed: object = None
    for number in range(SEQUENCES):
        if number % SEQUENCES_PER_DIRECTORY == 0:
            committed = None
        data = tmp_path / str(number // SEQUENCES_PER_DIRECTORY)
        try:
            committed = run_sequence(data, random.Random(SEED + number), committed)
        except BaseException as error:
            error.add_note(f"sequence {number}, SETTINGS_SEED={SEED}")
            raise
