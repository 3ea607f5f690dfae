"""Kafka's command-line tools work with the broker as with Kafka (contract/kafka.md#36–#40)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.metadata.health import State
from tests.faults.disks.disk_full_child import Sender
from tests.support.brokers import Serve
from tests.support.java import java
from tests.support.patience import eventually

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def bootstrap(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("data"), durability="os") as broker:
        yield broker.bootstrap_servers


def tool(name: str, bootstrap: str, *arguments: str) -> str:
    return java(f"org.apache.kafka.tools.{name}", "--bootstrap-server", bootstrap, *arguments)


def test_topics_are_created_described_widened_and_deleted(bootstrap: str) -> None:
    topics = ("TopicCommand", bootstrap)
    tool(
        *topics,
        "--create",
        "--topic",
        "tool",
        "--partitions",
        "3",
        "--config",
        "retention.ms=1000000",
    )
    described = tool(*topics, "--describe", "--topic", "tool")
    replicas = len(bootstrap.split(","))
    assert re.search(rf"PartitionCount: 3\s+ReplicationFactor: {replicas}\s", described)
    assert "retention.ms=1000000" in described
    tool(*topics, "--alter", "--topic", "tool", "--partitions", "5")
    assert "PartitionCount: 5" in tool(*topics, "--describe", "--topic", "tool")
    tool(*topics, "--delete", "--topic", "tool")
    assert "tool" not in tool(*topics, "--list").split()


def test_producer_performance_offsets_delete_records_and_log_dirs(
    bootstrap: str, tmp_path: Path
) -> None:
    tool("TopicCommand", bootstrap, "--create", "--topic", "perf", "--partitions", "2")
    report = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "perf", "--num-records", "5000", "--record-size", "100", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={bootstrap}"),
    )
    assert "5000 records sent" in report
    ends = dict(
        re.findall(r"perf:(\d):(\d+)", tool("GetOffsetShell", bootstrap, "--topic", "perf"))
    )
    assert sum(map(int, ends.values())) == 5000

    wanted = tmp_path / "delete.json"
    wanted.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "perf", "partition": 0, "offset": 10}]})
    )
    tool("DeleteRecordsCommand", bootstrap, "--offset-json-file", str(wanted))
    starts = tool("GetOffsetShell", bootstrap, "--topic", "perf", "--time", "-2")
    assert "perf:0:10" in starts

    described = tool("LogDirsCommand", bootstrap, "--describe", "--topic-list", "perf")
    [line] = [line for line in described.splitlines() if line.startswith("{")]
    [directory] = json.loads(line)["brokers"][0]["logDirs"]
    assert {p["partition"] for p in directory["partitions"]} == {"perf-0", "perf-1"}
    assert sum(p["size"] for p in directory["partitions"]) > 500_000


def test_kafka_log_dirs_skips_the_state_of_a_damaged_replica(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.create_topic("t")
        assert Sender(broker.bootstrap_servers).send("t", bytes(2000)) == 0
    log = tmp_path / "t-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:1000])
    with Broker(tmp_path) as broker:
        eventually(lambda: broker.health()[State.READ_ONLY] == ["t-0"])
        described = tool("LogDirsCommand", broker.bootstrap_servers, "--describe")
    [line] = [line for line in described.splitlines() if line.startswith("{")]
    [directory] = json.loads(line)["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert [(p["partition"], p["size"]) for p in directory["partitions"]] == [("t-0", 1000)]


def test_configs_are_altered_and_described(bootstrap: str) -> None:
    tool("TopicCommand", bootstrap, "--create", "--topic", "configured")
    configs = ("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap)
    topic = ("--entity-type", "topics", "--entity-name", "configured")
    java(
        *configs,
        *topic,
        "--alter",
        "--add-config",
        "max.message.bytes=2000,retention.bytes=5000000",
    )
    described = java(*configs, *topic, "--describe")
    assert "max.message.bytes=2000" in described
    assert "retention.bytes=5000000" in described
    java(*configs, *topic, "--alter", "--delete-config", "retention.bytes")
    assert "retention.bytes" not in java(*configs, *topic, "--describe")


def test_quotas_of_a_client_are_set_described_and_removed(bootstrap: str) -> None:
    configs = ("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap)
    client = ("--entity-type", "clients", "--entity-name", "shop")
    limits = "producer_byte_rate=1024,consumer_byte_rate=2048"
    java(*configs, *client, "--alter", "--add-config", limits)
    described = java(*configs, *client, "--describe")
    assert "producer_byte_rate=1024" in described
    assert "consumer_byte_rate=2048" in described
    java(*configs, *client, "--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate")
    assert "byte_rate" not in java(*configs, *client, "--describe")


def test_quotas_and_scram_credentials_of_a_user_are_described(bootstrap: str) -> None:
    """Regression: after the quotas the tool requests the user's credentials, and failed there."""
    configs = ("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap)
    user = ("--entity-type", "users", "--entity-name", "alice")
    java(*configs, *user, "--alter", "--add-config", "producer_byte_rate=1024")
    credential = "SCRAM-SHA-256=[iterations=8192,password=secret]"
    java(*configs, *user, "--alter", "--add-config", credential)
    described = java(*configs, *user, "--describe")
    assert "producer_byte_rate=1024" in described
    assert "SCRAM-SHA-256=iterations=8192" in described


def test_broker_api_versions_lists_the_advertised_versions(bootstrap: str) -> None:
    listed = tool("BrokerApiVersionsCommand", bootstrap)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", listed)
    assert re.search(r"ConsumerGroupHeartbeat\(68\): 0 to 1 \[usable: 1\]", listed)
    assert re.search(r"ShareGroupHeartbeat\(76\): UNSUPPORTED", listed)
