"""Commands with a broker of Kafka 3.9, which has older versions of some requests."""

import json
from collections.abc import Iterator

import pytest

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from tests.formats.releases.corpus import HERE
from tests.support.cli import run
from tests.support.java import classpath

pytestmark = pytest.mark.jvm

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, jars = tmp_path_factory.mktemp("kafka-3.9"), classpath(HERE / "kafka-3.9")
    kafka = ApacheKafka(folder, jvm=QUICK_TO_START, classpath=jars)
    yield kafka.bootstrap
    kafka.stop()


def test_features_are_described(kafka: str, capsys: Capture) -> None:
    assert run("features", "describe", "--json", "--bootstrap-server", kafka) == 0
    features = json.loads(capsys.readouterr().out)["features"]
    found = {one["name"]: (one["supported_max"], one["finalized"]) for one in features}
    assert found == {"kraft.version": (1, 1), "metadata.version": (21, 21)}


def test_change_of_a_feature_is_checked(kafka: str, capsys: Capture) -> None:
    """The command sent UpdateFeatures v2, and the broker closed the connection."""
    asked = "--dry-run", "--bootstrap-server", kafka
    assert run("features", "downgrade", "metadata.version=20", *asked) == 0
    assert capsys.readouterr().out == "would change metadata.version: 21 -> 20\n"


def test_rejected_change_of_one_feature_is_reported(kafka: str, capsys: Capture) -> None:
    """Version 1 has an error for each feature, but no error for the whole request."""
    levels = "kraft.version=1", "metadata.version=99"
    assert run("features", "upgrade", *levels, "--dry-run", "--bootstrap-server", kafka) == 1
    out, err = capsys.readouterr()
    assert out == "would change kraft.version: 1 -> 1\n"
    assert "metadata.version: INVALID_UPDATE_VERSION: Invalid update version 99" in err


def test_rejected_voter_is_reported(kafka: str, capsys: Capture) -> None:
    """The command sent AddRaftVoter v1, and the broker closed the connection."""
    voter = "1@127.0.0.1:9093:AAAAAAAAAAAAAAAAAAAAAQ"
    assert run("quorum", "add", voter, "--bootstrap-server", kafka) == 1
    assert "cannot add voter 1" in (err := capsys.readouterr().err), err
    assert "closed the connection" not in err


def test_the_cluster_is_healthy(kafka: str, capsys: Capture) -> None:
    assert run("cluster", "status", "--json", "--bootstrap-server", kafka) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
