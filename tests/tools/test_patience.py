"""The bounds of the tests' waits, and the guard that finds bounds written elsewhere."""

import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support import patience
from tools.guards.figures import Measure
from tools.guards.patience import EXEMPT, measure
from tools.guards.tree import ROOT, Tree

IMPORT = "from tests.support.patience import PATIENCE_S, POLL_MS, POLL_S, exactly, seconds\n"

BOUNDS = {  # a wait bounded by a number, and the same wait without a fault
    "run(['ls'], timeout=60)": "run(['ls'], timeout=PATIENCE_S)",
    "ask(timeout_s=0.5)": "ask(timeout_s=exactly(0.5, 'no broker answers'))",
    "admin.create(topics, request_timeout=5)": "admin.create(topics, request_timeout=PATIENCE_S)",
    "run(['ls'], timeout=2 * 60)": "run(['ls'], timeout=2 * PATIENCE_S)",
    "run(['ls'], timeout=60 + 5 * rounds)": "run(['ls'], timeout=seconds(60 + 5 * rounds))",
    "run(['ls'], timeout=9 if slow else None)": "run(['ls'], timeout=PATIENCE_S if slow else None)",
    "def ask(timeout: float = 5): ...": "def ask(timeout: float = PATIENCE_S): ...",
    "def ask(*, timeout: float = 5): ...": "def ask(*, count: int = 5): ...",
    "timeout = 5": "timeout = PATIENCE_S",
    "event.wait(5)": "event.wait(0)",
    "thread.join(5)": "', '.join(names)",
    "future.result(5)": "future.result()",
    "events.get(True, 5)": "places.get(name, 5)",
    "process.communicate(b'', 5)": "process.communicate(b'')",
    "consumer.poll(5.0)": "consumer.poll(POLL_S)",
    "consumer.consume(100, 0.2)": "consumer.consume(100, POLL_S)",
    "consumer.poll(timeout_ms=500)": "consumer.poll(timeout_ms=POLL_MS)",
    "producer.flush(60)": "producer.flush(PATIENCE_S)",
    "line.settimeout(3)": "line.settimeout(PATIENCE_S)",
    "socket.create_connection(address, 5)": "socket.create_connection(address)",
    "await asyncio.wait_for(done, 5)": "await asyncio.wait_for(done, PATIENCE_S)",
    "end = time.monotonic() + 30": "end = time.monotonic() + PATIENCE_S",
    "end = 30 + time.monotonic()": "begun = time.monotonic() - 30",
    "assert time.monotonic() - begun < 5": "assert time.monotonic() - begun >= 5",
    "assert time.process_time() - begun < 5": "assert time.process_time() > 0",
    "@pytest.mark.timeout(300)\ndef test(): ...": "@pytest.mark.timeout(seconds(300))\ndef test(): ...",
}

LOCALS = {  # the same, with names inside a function; the bound is in its first line
    "limit = 5; event.wait(limit)": "limit = PATIENCE_S; event.wait(limit)",
    "limit = 2 * 30; run(['ls'], timeout=limit + 1)": "limit = 5; take(limit)",
    "short, end = 5, None; thread.join(short)": "short, end = 5, None; thread.join(end)",
    "for limit in (5, None): thread.join(limit)": "for limit in (0, None): thread.join(limit)",
    "limit = 5; waits = lambda: event.wait(limit)": "def limit(n=5): event.wait(0)",
    "limit = 1; limit = limit * 2; event.wait(limit)": "limit = limit * 2; event.wait(limit)",
    "begun = time.monotonic(); end = begun + 5": "begun = time.monotonic(); end = begun + PATIENCE_S",
    "begun = time.monotonic(); assert time.monotonic() - begun < 5": (
        "begun = time.monotonic(); assert time.monotonic() - begun < PATIENCE_S"
    ),
    "took = time.monotonic() - begun; assert took < 5": "took = len(rows) - 1; assert took < 5",
    "took = time.monotonic() - begun; assert 5 > took": "took = time.time() - a; assert 5 < took",
    "took = time.time_ns() - begun; assert 1 <= took / 1e9 <= 5": (
        "took = time.time_ns() - begun; assert 1 <= took / 1e9"
    ),
    "end = time.monotonic(); took = end - begun; assert took <= 5": (
        "end = read(); took = end - begun; assert took <= 5"
    ),
}

REQUEST_FIELD = "CreateTopicsRequest(topics=[], timeout_ms=1000)"


@pytest.mark.parametrize(("value", "scale"), [("1", 1.0), ("2.5", 2.5), (" 3 ", 3.0)])
def test_a_scale_is_a_number_above_zero(value: str, scale: float) -> None:
    assert patience.scale_of(value) == scale


@pytest.mark.parametrize("value", ["", "fast", "0", "-1", "nan", "inf"])
def test_an_invalid_scale_is_an_error_that_names_the_variable(value: str) -> None:
    with pytest.raises(ValueError, match=f"PYKAFKA_PATIENCE must be a number above 0.*'{value}'"):
        patience.scale_of(value)


PROGRAM = """
from tests.support import patience as p
print(p.PATIENCE_S, p.PATIENCE_MS, p.PATIENCE_NS, p.ATTEMPT_S, p.seconds(600))
print(p.POLL_S, p.exactly(5, "a reason"))
"""


def bounds_with(scale: str) -> "subprocess.CompletedProcess[str]":
    """The bounds in a process that has this scale."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={patience.VARIABLE: scale, "PYTHONPATH": str(ROOT)},
        timeout=patience.PATIENCE_S,
        check=False,
    )


def test_the_environment_scales_every_bound_but_no_time_of_a_scenario() -> None:
    done = bounds_with("3")
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["360.0 360000 360000000000 30.0 1800.0", "0.1 5"]


def test_an_invalid_environment_ends_the_run() -> None:
    done = bounds_with("soon")
    assert done.returncode != 0
    assert "PYKAFKA_PATIENCE must be a number above 0" in done.stderr


def test_a_bound_below_a_minute_is_refused() -> None:
    assert patience.seconds(60) == 60 * patience.SCALE
    with pytest.raises(ValueError, match="59 s is too short"):
        patience.seconds(59)


def config(option: float | None) -> pytest.Config:
    """A configuration with 900 seconds in its file and `option` on its command line."""
    found = SimpleNamespace(option=SimpleNamespace(timeout=option), getini=lambda _: "900")
    return cast(pytest.Config, found)


def test_the_timeout_of_each_test_is_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SCALE", 2.0)
    monkeypatch.delenv("PYTEST_TIMEOUT", raising=False)
    given = config(None)
    patience.scale_timeout(given)
    assert given.option.timeout == 1800


def test_a_timeout_of_the_command_line_is_not_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SCALE", 2.0)
    given = config(0)
    patience.scale_timeout(given)
    assert given.option.timeout == 0


def test_a_timeout_of_the_environment_is_not_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SCALE", 2.0)
    monkeypatch.setenv("PYTEST_TIMEOUT", "5")
    given = config(None)
    patience.scale_timeout(given)
    assert given.option.timeout is None


def test_eventually_returns_once_the_condition_holds() -> None:
    states = iter([False, False, True, False])
    patience.eventually(lambda: next(states))
    assert list(states) == [False]


def test_eventually_names_the_condition_that_did_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    with pytest.raises(AssertionError, match="not within 0 s: the topic exists"):
        patience.eventually(lambda: False, "the topic exists")


class Sources(Tree):
    """A tree of texts that are not on the disk."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__()
        self._files = files

    @cached_property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self._files))

    def read(self, path: str) -> str:
        return self._files[path]


def measures(**files: str) -> dict[str, Measure]:
    """Return the figures of a tree with these modules in ``tests/broker``."""
    tree = Sources({f"tests/broker/{name}.py": source for name, source in files.items()})
    return {found.name: found for found in measure(tree)}


@pytest.mark.parametrize("source", BOUNDS)
def test_a_number_that_bounds_a_wait_is_found(source: str) -> None:
    found = measures(test_a=f"{IMPORT}\n{source}\n")["literal_timeouts"]
    assert found.counts == {"tests/broker": 1}
    (finding,) = found.findings["tests/broker"]
    assert (finding.path, finding.line) == ("tests/broker/test_a.py", 3)
    assert "tests/support/patience.py" in finding.advice


@pytest.mark.parametrize("source", [*BOUNDS.values(), REQUEST_FIELD])
def test_a_bound_of_the_patience_module_is_accepted(source: str) -> None:
    found = measures(test_a=f"{IMPORT}\n{source}\n")["literal_timeouts"]
    assert found.counts == {}


@pytest.mark.parametrize("source", LOCALS)
def test_a_number_with_a_local_name_is_found(source: str) -> None:
    found = measures(test_a=f"{IMPORT}\nasync def test():\n    {source}\n")["literal_timeouts"]
    assert [finding.line for finding in found.findings["tests/broker"]] == [4]


@pytest.mark.parametrize("source", LOCALS.values())
def test_a_local_name_for_another_value_is_accepted(source: str) -> None:
    found = measures(test_a=f"{IMPORT}\ndef test():\n    {source}\n")["literal_timeouts"]
    assert found.counts == {}


def test_a_default_of_a_parameter_is_found() -> None:
    source = "def wait(limit=5, *, other=None):\n    def inner():\n        event.wait(limit)\n"
    found = measures(test_a=source)["literal_timeouts"]
    assert [finding.text for finding in found.findings["tests/broker"]] == [
        "the bound of a wait is a number: limit = 5"
    ]


CONSTANT = "WAIT_S: float = 60\n"


@pytest.mark.parametrize(
    "use",
    [
        "from tests.broker.shared import WAIT_S\nfirst.wait(WAIT_S), second.wait(2 * WAIT_S)\n",
        "from tests.broker.shared import WAIT_S as LONG\nfirst.wait(LONG)\n",
        "from tests.broker import shared\nfirst.wait(shared.WAIT_S)\n",
    ],
)
def test_a_constant_is_found_once_at_its_definition(use: str) -> None:
    found = measures(shared=CONSTANT, test_a=use, test_b=use)["literal_timeouts"]
    places = [(finding.path, finding.line) for finding in found.findings["tests/broker"]]
    assert ("tests/broker/shared.py", 1) in places
    assert len(places) == found.counts["tests/broker"] == 1


def test_a_constant_of_a_class_is_found() -> None:
    source = "class Member:\n    A, WAIT_S = 0, 5\n    def run(self):\n        self.end.wait(self.WAIT_S)\n"
    found = measures(test_a=source)["literal_timeouts"]
    assert [finding.line for finding in found.findings["tests/broker"]] == [2]


def test_the_patience_module_is_exempt() -> None:
    sources = {
        EXEMPT: "POLL_S = 0.1\nevent.wait(5)\ntime.sleep(1)\n",
        "tests/broker/test_a.py": f"{IMPORT}\nevent.wait(POLL_S)\n",
    }
    assert [found.counts for found in measure(Sources(sources))] == [{}, {}]


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(0.1)",
        "sleep(PAUSE_S)",
        "await asyncio.sleep(1)",
        "await asyncio.sleep(delay=1)",
        "time.sleep(exactly(1, 'r'))",
    ],
)
def test_a_sleep_is_found(source: str) -> None:
    found = measures(test_a=f"{source}\n")["sleeps"]
    (finding,) = found.findings["tests/broker"]
    assert (finding.line, finding.text) == (1, source.removeprefix("await "))
    assert "eventually" in finding.advice


def test_sleep_under_another_name_is_found() -> None:
    found = measures(test_a="from time import sleep as pause\npause(3)\n")["sleeps"]
    assert [finding.text for finding in found.findings["tests/broker"]] == ["pause(3)"]


@pytest.mark.parametrize("source", ["time.sleep(0)", "eventually(is_done)", "bed.sleep()"])
def test_a_yield_is_not_a_sleep(source: str) -> None:
    assert measures(test_a=f"{source}\n")["sleeps"].counts == {}
