"""`cordoned.log.dirs` (KIP-1066) of a single broker, with error codes and texts of Kafka 4.4.0."""

from typing import Any

import pytest

from pykafka_core.handlers.topics.placement import NO_BROKER
from pykafka_core.metadata.image.features import CORDONED_DIRECTORIES_LEVEL, METADATA_VERSION
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from pykafka_core.types import RESOURCE_BROKER
from tests.handlers.configs.test_incremental_alter_configs import DELETE, SET
from tests.support.simulated.broker import SimulatedBroker

NAME = "cordoned.log.dirs"


def alter(broker: SimulatedBroker, value: str | None, node: str = "1") -> tuple[int, str | None]:
    request = IncrementalAlterConfigsRequest
    change = request.AlterableConfig(
        name=NAME, config_operation=DELETE if value is None else SET, value=value
    )
    resource = request.AlterConfigsResource(
        resource_type=RESOURCE_BROKER, resource_name=node, configs=[change]
    )
    response: Any = broker.ask(request(resources=[resource]), 1)
    broker.run()
    return response.responses[0].error_code, response.responses[0].error_message


def upgraded(config: dict[str, str] | None = None) -> SimulatedBroker:
    broker = SimulatedBroker(config)
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=METADATA_VERSION, max_version_level=CORDONED_DIRECTORIES_LEVEL, upgrade_type=1
    )
    response: Any = broker.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert response.error_code == 0, response
    broker.run()
    return broker


def create(broker: SimulatedBroker, name: str) -> tuple[int, str | None]:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    response: Any = broker.ask(CreateTopicsRequest(topics=[topic]), 7)
    return response.topics[0].error_code, response.topics[0].error_message


def is_cordoned(broker: SimulatedBroker) -> bool:
    response: Any = broker.ask(DescribeLogDirsRequest(topics=[]), 5)
    assert broker.image.brokers[1].is_cordoned is response.results[0].is_cordoned
    return bool(response.results[0].is_cordoned)


def test_cordoned_directory_gets_no_new_partitions() -> None:
    broker = upgraded()
    assert alter(broker, "*") == (0, None)
    assert is_cordoned(broker)
    code, text = create(broker, "refused")
    assert (code, text) == (38, f"Unable to replicate the partition 1 time(s): {NO_BROKER}")
    assert alter(broker, None) == (0, None)
    assert not is_cordoned(broker)
    assert create(broker, "taken") == (0, None)


def test_a_directory_that_is_cordoned_at_the_start_is_registered_once_the_level_allows_it() -> None:
    broker = upgraded({NAME: "*"})
    assert is_cordoned(broker)
    restarted = SimulatedBroker({NAME: "*"}, broker.core)
    restarted.run()
    assert is_cordoned(restarted)


def test_lower_levels_have_no_cordoned_directories() -> None:
    broker = SimulatedBroker()
    text = "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
    assert alter(broker, "*") == (40, text)
    assert not is_cordoned(broker)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("*,/a", "When cordoned.log.dirs is set to *, it must not contain other values"),
        ("/a,/a", "Configuration 'cordoned.log.dirs' values must not be duplicated."),
        (
            "/b",
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir."
            " Missing entries : /b",
        ),
    ],
)
def test_other_directories_cannot_be_cordoned(value: str, reason: str) -> None:
    broker = upgraded({"log.dirs": "/a"})
    code, text = alter(broker, value)
    assert code == 42
    assert text is not None
    assert text.endswith(reason)


def test_all_brokers_together_cannot_be_cordoned() -> None:
    code, _ = alter(upgraded(), "*", node="")
    assert code == 42
