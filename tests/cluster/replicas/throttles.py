"""Helpers for tests of replication throttles (KIP-73)."""

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from pykafka_core import Cluster
from pykafka_core.cli.client import wire
from pykafka_core.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykafka_core.types import RESOURCE_BROKER
from tests.cluster.clients import create_placed
from tests.cluster.nodes import batches
from tests.support.patience import PATIENCE_S

ONE_BATCH = {"replica.fetch.max.bytes": 1}
"""A response has one batch of a partition, so a rate of 0 lets one through in eleven seconds."""
BATCHES = 20
"""At that rate, they take minutes."""
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def create_filled(cluster: Cluster, name: str, *replicas: list[int]) -> None:
    """Create a topic with a partition per list of replicas, each with `BATCHES` batches."""
    create_placed(cluster, name, *replicas)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    for number in range(BATCHES):
        for partition in range(len(replicas)):
            producer.produce(name, str(number), partition=partition)
        assert producer.flush(PATIENCE_S) == 0


def records(count: int = BATCHES) -> list[str]:
    """Return the values of `create_filled`, as `tests.cluster.clients.consume` returns them."""
    return sorted(str(number) for number in range(count))


def throttles(cluster: Cluster, topic: str) -> dict[str, str]:
    """Return the throttle settings of a topic and of all brokers.

    Keys are ``NAME`` for the topic, ``NAME@BROKER`` for one broker, ``NAME@`` for all brokers.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    nodes = [str(node) for node in range(len(cluster.brokers))]
    resources = [ConfigResource(ResourceType.BROKER, node) for node in nodes]
    described: dict[ConfigResource, Future[dict[str, ConfigEntry]]] = {}
    # librdkafka describes one broker per call.
    for resource in (ConfigResource(ResourceType.TOPIC, topic), *resources):
        described |= admin.describe_configs([resource])
    found = {}
    for resource, future in described.items():
        at = {
            ConfigSource.DYNAMIC_TOPIC_CONFIG: "",
            ConfigSource.DYNAMIC_BROKER_CONFIG: f"@{resource.name}",
            ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "@",
        }
        for name, entry in future.result(PATIENCE_S).items():
            source = ConfigSource(entry.source)
            if ".replication.throttled." in name and source in at:
                found[name + at[source]] = entry.value
    return found


def alter(
    cluster: Cluster, kind: int, name: str, settings: Mapping[str, str] | Mapping[str, None]
) -> None:
    """Alter settings of a topic, a broker, or all brokers (empty name); None deletes a setting."""
    of = IncrementalAlterConfigsRequest
    configs = [
        of.AlterableConfig(name=setting, config_operation=1 if value is None else 0, value=value)
        for setting, value in settings.items()
    ]
    resource = of.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    with wire.cluster(cluster.bootstrap_servers, "cannot alter") as found:
        request = of(resources=[resource])
        asked = found.node(int(name)) if kind == RESOURCE_BROKER and name else found.any()
        response = asked.ask(44, 1, request, IncrementalAlterConfigsResponse)
    assert [one.error_message for one in response.responses] == [None], response


def copied(data: Path, node: int, topic: str) -> int:
    """Return the number of bytes of batches of partition 0 on a node's disk."""
    files = (data / str(node) / f"{topic}-0").glob("*.log")
    return sum(len(batches(file.read_bytes())) for file in files)
