"""Limit values of every setting are accepted or rejected as by Apache Kafka 4.2.1, except for
declared differences.

The golden verdicts come from Kafka (``tools/verdicts``).
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pykafka_core.config import BrokerConfigs, Scope, Setting, Support, settings
from pykafka_core.errors import ConfigurationError
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC
from tests.support.simulated.broker import SimulatedBroker
from tools.verdicts.__main__ import NODE_ID, TOPIC

GOLDEN = Path(__file__).parent / "golden" / "kafka-4.2.1-verdicts.json"
# The settings with which StaticVerdicts.java starts its node.
STATIC = {
    "process.roles": "broker,controller",
    "node.id": NODE_ID,
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/static-verdicts",
}
THREADS = (
    "background num.io num.network num.recovery num.replica remote.log.manager remote.log.reader"
)


class Case(NamedTuple):
    """One value of one setting; verdicts are error codes, or -1 for an error without a code."""

    layer: str
    setting: Setting
    value: str
    kafka: int
    ours: int


class Difference(NamedTuple):
    """A declared difference, and its reason."""

    reason: str
    covers: Callable[[Case], bool]
    """Returns whether the difference covers a case."""


DECLARED = (
    Difference(
        "what is not built is refused by name, whatever its value",
        lambda case: case.setting.support is Support.NOT_BUILT and case.ours != 0,
    ),
    Difference(
        "the number of threads has no meaning here, so it may be changed by any factor",
        lambda case: "broker" in case.layer and case.setting.name.startswith(tuple(THREADS.split())),
    ),
    Difference(
        "tiered storage is not built: what would stay on local disk has no meaning",
        lambda case: case.setting.name.startswith("log.local.retention."),
    ),
    Difference(
        "a node alone is its own quorum, and needs not say so",
        lambda case: case.setting.name == "controller.quorum.voters" and not case.value,
    ),
    Difference(
        "there is no Java here: Kafka's own classes for replica selectors stand for what they do",
        lambda case: case.setting.name == "replica.selector.class" and bool(case.value),
    ),
    Difference(
        "assignors are Java classes there; ours come with the group coordinators",
        lambda case: case.setting.name.endswith(".assignors") and bool(case.value),
    ),
)  # fmt: skip


def cases() -> Iterator[tuple[str, Setting, str, int]]:
    for layer, by_name in json.loads(GOLDEN.read_text(encoding="utf-8")).items():
        table = settings(Scope.TOPIC if layer == "topic" else Scope.BROKER)
        for name, by_value in by_name.items():
            for value, verdict in by_value.items():
                yield layer, table[name], value, verdict


@pytest.fixture(scope="module")
def broker() -> SimulatedBroker:
    broker = SimulatedBroker({"node.id": NODE_ID})
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    broker.ask(CreateTopicsRequest(topics=[topic]))
    return broker


def given(name: str, value: str) -> int:
    try:
        BrokerConfigs({**STATIC, name: value})
    except ConfigurationError:
        return -1
    return 0


def altered(broker: SimulatedBroker, kind: int, resource: str, name: str, value: str) -> int:
    changes = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
    ]
    asked = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=changes
    )
    response = broker.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=True))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return int(response.responses[0].error_code)


def test_every_verdict_equals_that_of_kafka_or_is_declared(broker: SimulatedBroker) -> None:
    resources = {
        "all brokers": (RESOURCE_BROKER, ""),
        "one broker": (RESOURCE_BROKER, NODE_ID),
        "topic": (RESOURCE_TOPIC, TOPIC),
    }
    unused = {difference.reason for difference in DECLARED}
    unexplained = []
    for layer, setting, value, verdict in cases():
        name = setting.name
        ours = (
            given(name, value)
            if layer == "start"
            else altered(broker, *resources[layer], name, value)
        )
        case = Case(layer, setting, value, verdict, ours)
        if case.ours == case.kafka:
            continue
        reasons = {difference.reason for difference in DECLARED if difference.covers(case)}
        unused -= reasons
        if not reasons:
            unexplained.append(f"{layer}: {name}={value!r}: Kafka {verdict}, ours {ours}")
    assert not unexplained, "\n".join(unexplained)
    assert unused == set()
