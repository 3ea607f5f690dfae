"""The guide's three programs deliver as their names say, if killed at each line of two batches."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.docs.deaths import Left, made
from tests.idempotent.kafka import QUIET
from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.kill

PROGRAMS = Path(__file__).resolve().parents[2] / "examples" / "delivery"
SENT = [f"payment {number}" for number in range(1200)]


def outcome(serve: Serve, program: str, directory: Path) -> tuple[Counter[str], list[Left]]:
    """Return how many times each payment was made, and the state after each kill."""
    with serve() as broker:
        broker.create_topic("payments")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        for value in SENT:
            producer.produce("payments", value, headers=[("message-id", value.encode())])
        assert producer.flush(PATIENCE_S) == 0
        arguments = [str(PROGRAMS / program), broker.bootstrap_servers, str(directory)]
        command = [sys.executable, "-m", "tests.docs.deaths", *arguments, str(len(SENT))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Counter(made(directory)), [Left(*one) for one in json.loads(done.stdout)]


def test_at_most_once_loses_and_never_repeats(serve: Serve, tmp_path: Path) -> None:
    count, left = outcome(serve, "at_most_once.py", tmp_path)
    assert {"main", "save", "append"} <= {death.function for death in left}
    assert set(count.values()) == {1}
    assert 0 < len(count) < len(SENT)


def test_at_least_once_repeats_and_never_loses(serve: Serve, tmp_path: Path) -> None:
    count, left = outcome(serve, "at_least_once.py", tmp_path)
    assert {"main", "save", "append"} <= {death.function for death in left}
    assert set(count) == set(SENT)
    assert max(count.values()) > 1


def test_exactly_once_does_neither(serve: Serve, tmp_path: Path) -> None:
    count, left = outcome(serve, "exactly_once.py", tmp_path)
    assert count == Counter(SENT)
    assert any(death.begun > death.done for death in left), "in the effect"
    assert any(death.done > death.made for death in left), "between the effect and the commit"
    assert any(0 < death.begun == death.made for death in left), "after the commit"
