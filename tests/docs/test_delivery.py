"""The guide's three programs, killed at each of their lines, behave as their names say."""

import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from tests.idempotent.kafka import QUIET

PROGRAMS = Path(__file__).resolve().parents[2] / "examples" / "delivery"
SENT = [f"payment {number}" for number in range(1500)]


def outcome(program: str, step: int, deaths: int, directory: Path) -> Counter[str]:
    """How often each payment was made."""
    with Broker() as broker:
        broker.create_topic("payments")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        for value in SENT:
            producer.produce("payments", value, headers=[("message-id", value.encode())])
        assert producer.flush(20) == 0
        path, address = str(PROGRAMS / program), broker.bootstrap_servers
        arguments = [path, str(step), str(deaths), address, str(directory)]
        command = [sys.executable, "-m", "tests.docs.deaths", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Counter(made(directory))


def made(directory: Path) -> list[str]:
    if (directory / "payments.txt").exists():
        return (directory / "payments.txt").read_text().splitlines()
    with closing(sqlite3.connect(directory / "payments.db")) as connection:
        return [value for (value,) in connection.execute("SELECT value FROM payments")]


@pytest.mark.timeout(300)
def test_at_most_once_loses_and_never_repeats(tmp_path: Path) -> None:
    count = outcome("at_most_once.py", 1, 50, tmp_path)
    assert set(count.values()) == {1}
    assert 0 < len(count) < len(SENT)


@pytest.mark.timeout(300)
def test_at_least_once_repeats_and_never_loses(tmp_path: Path) -> None:
    count = outcome("at_least_once.py", 1, 50, tmp_path)
    assert set(count) == set(SENT)
    assert max(count.values()) > 1


@pytest.mark.timeout(300)
def test_exactly_once_does_neither(tmp_path: Path) -> None:
    count = outcome("exactly_once.py", 13, 40, tmp_path)
    assert count == Counter(SENT)
