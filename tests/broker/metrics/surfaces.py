"""Every surface that shows the health of a node or of a cluster, compared with one expectation."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core.broker.metrics.server import MetricsServer
from pykafka_core.cli.cluster.status import look
from pykafka_core.metadata.health import MEASURES, Health, State, health_of, problems
from tests.broker.metrics.test_metrics import get, metrics
from tests.support.cli import run
from tests.support.patience import eventually

OF_A_NODE = {
    State.OFFLINE_REPLICA,
    State.READ_ONLY,
    State.UNREADABLE,
    State.UNCLEANABLE,
    State.UNLOADED_COORDINATOR,
    State.FAILED_DIRECTORY,
    State.FULL_DIRECTORY,
}
"""States in which commands name the node."""
Found = Mapping[State, Sequence[str]]
"""States without any name may be missing."""
Capture = pytest.CaptureFixture[str]


def check(capsys: Capture, expected: Mapping[Broker, Found]) -> None:
    """Wait until the brokers have this health, and compare all their surfaces and the cluster's."""
    for broker, found in expected.items():
        _check_node(broker, health_of(_names(found)))
    named = ((broker.node_id, *one) for broker, found in expected.items() for one in _names(found))
    whole = health_of(
        (state, f"{name} of node {node_id}" if state in OF_A_NODE else name)
        for node_id, state, name in named
    )
    _check_commands(capsys, next(iter(expected)).bootstrap_servers, whole)


def _names(found: Found) -> Iterator[tuple[State, str]]:
    for state, names in found.items():
        for name in names:
            yield state, name


def _check_node(broker: Broker, health: Health) -> None:
    eventually(lambda: broker.health() == health)
    counts = metrics(broker.metrics())
    assert {state: counts[MEASURES[state].metric, ""] for state in State} == {
        state: len(names) for state, names in health.items()
    }
    with _served(broker) as address:
        assert get(address, "/healthz") == (200, "ok\n")
        status, text = get(address, "/readyz")
    lines = problems(health)
    assert (status, text.splitlines()) == ((503, lines) if lines else (200, ["ok"]))


@contextmanager
def _served(broker: Broker) -> Iterator[str]:
    server = MetricsServer(broker, "", 0)
    try:
        yield server.address
    finally:
        server.close()


def _check_commands(capsys: Capture, bootstrap: str, health: Health) -> None:
    eventually(lambda: look(bootstrap).health == health)
    lines = problems(health)
    for command in (["status"], ["cluster", "status"]):
        code, said = _said(capsys, *command, "--json", "-b", bootstrap)
        assert {state: said[state] for state in State} == health
        assert code == bool(said["problems"])
        assert _of_health(said["problems"]) == lines
    code, said = _said(capsys, "doctor", "--json", "-b", bootstrap)
    found = [one["text"] for one in said["findings"] if one["subject"] == "cluster"]
    assert _of_health(found) == lines
    assert said["healthy"] is not bool(lines)
    assert code == bool(lines)


def _of_health(lines: Sequence[str]) -> list[str]:
    """Return the lines without those that come from DescribeQuorum."""
    return [line for line in lines if not line.startswith(("down: ", "no controller answers"))]


def _said(capsys: Capture, *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run(*arguments)
    return code, json.loads(capsys.readouterr().out)
