"""``perf`` counts the records that it sends and reads, and its percentiles are correct."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import Broker
from pykafka_core.cli.perf.latencies import PERCENTILES, Latencies
from tests.support.cli import run
from tests.support.patience import PATIENCE_S

Capture = pytest.CaptureFixture[str]
RECORDS, SIZE = 500, 64


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", str(request.node.name))
    broker.create_topic(name, 2)
    return name


def measured(capsys: Capture, *arguments: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run("perf", *arguments, "--json") == code
    said = json.loads(capsys.readouterr().out)
    assert isinstance(said, dict)
    return said


def check_times(said: dict[str, Any]) -> None:
    latency = said["latency_ms"]
    steps = [latency[name] for name in (*PERCENTILES, "max")]
    assert steps[0] > 0
    assert steps == sorted(steps)
    assert said["records_per_second"] > 0


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_produced_records_are_consumed_and_both_are_counted(
    topic: str, capsys: Capture, acks: str
) -> None:
    sizes = "--records", str(RECORDS), "--size", str(SIZE)
    sent = measured(capsys, "produce", topic, *sizes, "--acks", acks)
    assert (sent["records"], sent["bytes"], sent["failed"]) == (RECORDS, RECORDS * SIZE, 0)
    read = measured(capsys, "consume", topic)
    assert (read["records"], read["bytes"]) == (RECORDS, RECORDS * SIZE)
    check_times(sent)
    check_times(read)


def test_consume_stops_at_the_requested_number_of_records(topic: str, capsys: Capture) -> None:
    measured(capsys, "produce", topic, "--records", "300")
    assert measured(capsys, "consume", topic, "--records", "123")["records"] == 123


def test_an_empty_topic_has_no_latencies(topic: str, capsys: Capture) -> None:
    read = measured(capsys, "consume", topic)
    assert (read["records"], read["records_per_second"]) == (0, 0)
    assert set(read["latency_ms"].values()) == {None}


def test_latency_of_round_trips_is_measured_in_a_topic_with_records(
    topic: str, capsys: Capture
) -> None:
    measured(capsys, "produce", topic, "--records", "10")
    said = measured(capsys, "latency", topic, "--records", "20")
    assert said["records"] == 20
    check_times(said)


def test_rejected_records_are_counted_and_named(
    topic: str, broker: Broker, capsys: Capture
) -> None:
    assert run("configs", "alter", "topic", topic, "--set", "max.message.bytes=200") == 0
    said = measured(capsys, "produce", topic, "--records", "5", "--size", "5000", code=1)
    assert (said["records"], said["failed"]) == (0, 5)


def test_rates_and_percentiles_are_printed(topic: str, capsys: Capture) -> None:
    assert run("perf", "produce", topic, "--records", "100") == 0
    out = capsys.readouterr().out
    assert out.startswith("produce: 100 records in ")
    assert "MiB/s" in out
    assert all(name in out for name in PERCENTILES)


def test_ctrl_c_prints_the_measurements_so_far(topic: str) -> None:
    command = [sys.executable, "-m", "pykafka_core.cli", "perf", "latency", topic, "--json"]
    with subprocess.Popen(
        [*command, "--records", "100000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # Its first records show that it measures.
        reader = [sys.executable, "-m", "pykafka_core.cli", "consume", topic, "--follow"]
        subprocess.run(
            [*reader, "--max", "10"], check=True, capture_output=True, timeout=PATIENCE_S
        )
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    said = json.loads(out)
    assert said["interrupted"]
    assert said["records"] > 0
    assert "Traceback" not in errors


def test_missing_topic_is_reported_with_the_command_that_creates_it(
    topic: str, capsys: Capture
) -> None:
    assert run("perf", "produce", "none") == 1
    assert "pykafka-core topics create none" in capsys.readouterr().err


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200))
def test_percentiles_are_within_one_percent(seconds: list[float]) -> None:
    latencies = Latencies()
    for one in seconds:
        latencies.add(one)
    ordered = sorted(seconds)
    for share in PERCENTILES.values():
        exact = ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]
        assert exact * 0.9999 <= latencies.percentile(share) <= exact * 1.0101
