"""A new directory from ``kafka-storage format``: its bootstrap.checkpoint is used, once."""

from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import BOOTSTRAP, METADATA_DIRECTORY, DataDirectory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.metadata.records.bootstrap import bootstrap_records
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.protocol.messages import ConfigRecord, FeatureLevelRecord
from tests.support.java import java

CLUSTER = "2EmZYW-FRB2ZlZqcy_R5Fw"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def bootstrap(data: Path, level: int) -> None:
    data.mkdir(exist_ok=True)
    records = [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=level),
        ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="7"),
    ]
    (data / BOOTSTRAP).write_bytes(encode_snapshot(records, 0, 1000))


@pytest.mark.jvm
def test_directory_formatted_by_the_tool_of_kafka_is_adopted(tmp_path: Path, data: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=3\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        f"controller.quorum.voters=3@localhost:9093\nlog.dirs={data}\n"
    )
    level = ["--release-version", "4.0"]
    user = ["--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]"]
    tool = "kafka.tools.StorageTool"
    java(tool, "format", "-t", CLUSTER, "-c", str(settings), *level, *user)
    for start in range(2):
        with Broker(data) as broker:
            assert (broker.cluster_id, broker.node_id) == (CLUSTER, 3)
            image = broker._image()
            assert image.features[METADATA_VERSION] == 25
            assert list(image.scram_credentials) == [("alice", 1)]
            broker.create_topic(f"topic-{start}")


def test_bootstrap_records_of_the_directory_replace_the_built_in_ones(data: Path) -> None:
    bootstrap(data, 25)
    with Broker(data) as broker:
        assert broker._image().features == {METADATA_VERSION: 25}
        assert broker._image().configs.of(4, "") == {"log.retention.ms": "7"}


def test_bootstrap_file_is_not_read_if_the_log_has_records(data: Path) -> None:
    Broker(data).close()
    bootstrap(data, 25)
    ours = {
        r.name: r.feature_level for r in bootstrap_records() if isinstance(r, FeatureLevelRecord)
    }
    with Broker(data) as broker:
        assert broker._image().features == ours
    (data / BOOTSTRAP).write_bytes(b"not read")
    Broker(data).close()


def test_bootstrap_file_is_not_read_if_there_is_a_snapshot(data: Path) -> None:
    bootstrap(data, 25)
    DataDirectory(data).create(Identity(CLUSTER, 1, bytes(range(16))))
    (data / METADATA_DIRECTORY).mkdir()
    snapshot = encode_snapshot(bootstrap_records(), 0, 1000)
    (data / METADATA_DIRECTORY / f"{0:020}-{0:010}.checkpoint").write_bytes(snapshot)
    with Broker(data) as broker:
        assert broker._image().features[METADATA_VERSION] == 29
