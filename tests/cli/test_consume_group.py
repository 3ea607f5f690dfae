"""``consume --group`` in several processes that share a topic, with a broker in this process."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from tests.support.cli import run
from tests.support.patience import PATIENCE_S

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, kafka_topic_name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic with ten records in two partitions; the group has the same name."""
    monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    broker.create_topic(kafka_topic_name, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(10):
        producer.produce(kafka_topic_name, str(number).encode(), partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return kafka_topic_name


@pytest.fixture
def kafka_topic_name(request: pytest.FixtureRequest) -> str:
    return str(request.node.originalname)


def consumed(capsys: Capture, topic: str, *options: str) -> list[str]:
    capsys.readouterr()
    assert run("consume", topic, "--group", topic, *options) == 0
    return capsys.readouterr().out.split()


def described(capsys: Capture, topic: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run("groups", "describe", topic, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert isinstance(row, dict)
    return row


def process(*arguments: str, **given: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pykafka_core.cli", *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **streams | given)


@pytest.mark.interval
def test_each_record_is_printed_once_over_several_runs(topic: str, capsys: Capture) -> None:
    runs = [consumed(capsys, topic, "--max", "3"), consumed(capsys, topic, "--max", "3")]
    runs.append(consumed(capsys, topic))
    assert [len(one) for one in runs] == [3, 3, 4]
    assert sorted(value for one in runs for value in one) == [str(number) for number in range(10)]
    assert consumed(capsys, topic) == []


def test_new_group_that_starts_at_the_end_prints_no_old_records(
    topic: str, capsys: Capture
) -> None:
    assert consumed(capsys, topic, "--from", "end") == []


def test_ctrl_c_commits_the_printed_records_and_leaves_the_group(
    topic: str, capsys: Capture
) -> None:
    with process("consume", topic, "--group", topic, "--follow") as member:
        assert member.stdout is not None
        lines = [member.stdout.readline() for _ in range(10)]
        assert "" not in lines, member.communicate()
        member.send_signal(signal.SIGINT)
        out, errors = member.communicate(timeout=PATIENCE_S)
    assert (member.returncode, out, errors) == (0, "", "")
    row = described(capsys, topic)
    # Without a LeaveGroup the member would remain for its session timeout of 45 s.
    assert (row["state"], row["members"], row["lag"]) == ("Empty", 0, 0)


def test_records_that_could_not_be_printed_are_not_committed(topic: str, capsys: Capture) -> None:
    command = f'"{sys.executable}" -m pykafka_core.cli consume {topic} --group {topic} > /dev/full'
    ran = subprocess.run(["sh", "-c", command], capture_output=True, check=False, text=True)
    assert ran.returncode == 1
    assert "No space left on device" in ran.stderr
    assert len(consumed(capsys, topic)) == 10


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--partition", "0"], 2, "leave out --partition, or --group"),
        (["--from", "3"], 2, "groups reset-offsets"),
        (["--group", ""], 2, "it is empty"),
        (["--group", "\udcff"], 2, "is not UTF-8"),
    ],
)
def test_options_invalid_for_a_group_are_rejected(
    options: list[str], code: int, text: str, broker: Broker, capsys: Capture
) -> None:
    address = broker.bootstrap_servers
    assert run("consume", "t", "--group", "g", "-b", address, *options) == code
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_topic_that_does_not_exist_is_named(broker: Broker, capsys: Capture) -> None:
    assert run("consume", "none", "--group", "g", "-b", broker.bootstrap_servers) == 1
    assert "there is no topic none" in capsys.readouterr().err
