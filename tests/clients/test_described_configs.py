"""``kafka-configs --describe`` prints the same text for our broker and for Apache Kafka."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core import Broker
from tests.cluster.clients import create
from tests.support.java import java

pytestmark = pytest.mark.jvm

ALTERED = (
    ("topics", "orders", "retention.ms=1000,cleanup.policy=compact"),
    ("brokers", "1", "log.cleaner.threads=1"),
    ("clients", "shop", "producer_byte_rate=1000"),
    ("users", "alice", "consumer_byte_rate=2000"),
    ("users", "alice", "SCRAM-SHA-256=[iterations=8192,password=secret]"),
    ("client-metrics", "watch", "metrics=[org.apache],interval.ms=1000"),
    ("groups", "readers", "consumer.session.timeout.ms=50000"),
)
ENTITIES = (
    "topics",
    "topics orders",
    "topics absent",
    "brokers",
    "brokers 1",
    "brokers 7",
    "brokers default",
    "clients",
    "clients shop",
    "clients default",
    "users",
    "users alice",
    "users carol",
    "users default",
    "ips",
    "ips default",
    "client-metrics",
    "client-metrics watch",
    "groups",
    "groups readers",
)


class Both(NamedTuple):
    """Bootstrap addresses of both brokers."""

    ours: str
    kafka: str

    def configs(self, *arguments: str) -> list[str]:
        def run(bootstrap: str) -> str:
            command = "kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap
            return java(*command, *arguments)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(run, self))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    kafka = ApacheKafka(tmp_path_factory.mktemp("kafka"), jvm=QUICK_TO_START)
    with Broker(tmp_path_factory.mktemp("ours")) as broker:
        made = Both(broker.bootstrap_servers, kafka.bootstrap)
        for bootstrap in made:
            create(bootstrap, "orders", 1)
        for kind, name, setting in ALTERED:
            entity = "--entity-type", kind, "--entity-name", name
            made.configs("--alter", *entity, "--add-config", setting)
        yield made
    kafka.stop()


def entity_of(text: str) -> Sequence[str]:
    kind, _, name = text.partition(" ")
    named = {"": [], "default": ["--entity-default"]}.get(name, ["--entity-name", name])
    return ["--entity-type", kind, *named]


def without_group_defaults(text: str) -> str:
    """Remove the broker settings that our broker, like Kafka since 4.3, names as sources."""
    return re.sub(r", DEFAULT_CONFIG:group\.\S+(?=\})", "", text)


@pytest.mark.parametrize("entity", ENTITIES)
def test_entity_is_described_as_by_kafka(both: Both, entity: str) -> None:
    ours, kafka = both.configs("--describe", *entity_of(entity))
    assert without_group_defaults(ours) == kafka


def test_all_settings_of_a_topic_are_described_as_by_kafka(both: Both) -> None:
    """The texts differ by one default, and by one setting of a later release."""
    ours, kafka = both.configs("--describe", "--all", *entity_of("topics orders"))
    flushed = line_of(ours, "flush.messages")  # our default syncs each append
    in_kafka = line_of(kafka, "flush.messages")
    assert re.sub(r"=1\b(?= sens|\})", f"={2**63 - 1}", flushed) == in_kafka
    later = line_of(ours, "max.decompressed.message.bytes")  # since Kafka 4.4
    assert ours.replace(flushed, in_kafka).replace(f"{later}\n", "") == kafka


def line_of(text: str, setting: str) -> str:
    (line,) = (line for line in text.splitlines() if line.startswith(f"  {setting}="))
    return line
