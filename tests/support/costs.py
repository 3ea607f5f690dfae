"""Checks that a test which starts something expensive carries the marker of its cost.

A function that starts something expensive calls `charge`, which fails unless the running test has
the marker, so a marker cannot be forgotten. A fixture that several tests share pays once, in the
first of them. Its costs are recorded, and every later test that requests the same value of the
fixture needs the same markers.

`tests/conftest.py` loads this plugin, which helpers import before. PYTEST_DONT_REWRITE
"""

from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pytest

Cost = Literal["spark", "jvm", "postgres", "cluster", "kill", "wheel"]

CAUSES: dict[Cost, str] = {
    "spark": "uses a Spark session",
    "jvm": "starts a JVM",
    "postgres": "uses a PostgreSQL server",
    "cluster": "starts several broker processes",
    "kill": "kills a process more than once",
    "wheel": "builds or installs a wheel",
}
"""Marker → the action of a test that requires it."""

FIXTURES: dict[str, Cost] = {"spark": "spark", "postgres_server": "postgres", "wheel": "wheel"}
"""Fixtures whose cost every test has that requests them, directly or through other fixtures."""


class _Value(NamedTuple):
    """One value of a fixture."""

    base: str
    """The node id of the file or folder that defines the fixture."""
    name: str
    parameter: int
    """The index of the parameter; 0 for a fixture without parameters."""


@dataclass
class _State:
    """The test and the fixtures that run now, and the recorded costs of fixtures."""

    item: pytest.Item | None = None
    fixtures: list[_Value] = field(default_factory=list)
    costs: dict[_Value, set[Cost]] = field(default_factory=lambda: defaultdict(set))


_STATE = _State()


def charge(cost: Cost) -> None:
    """Record a cost of the running test and fixture; outside tests this does nothing.

    Raises:
        AssertionError: The running test does not have the marker ``cost``.
    """
    for value in _STATE.fixtures:
        _STATE.costs[value].add(cost)
    if _STATE.item is not None:
        _require(_STATE.item, cost)


def _require(item: pytest.Item, cost: Cost) -> None:
    if item.get_closest_marker(cost) is None:
        message = f"{item.nodeid} {CAUSES[cost]}: mark it with pytest.mark.{cost}"
        raise AssertionError(message)


def _requests(item: pytest.Item, value: _Value) -> bool:
    names: list[str] = getattr(item, "fixturenames", [])
    if value.name not in names or not item.nodeid.startswith(value.base):
        return False
    callspec = getattr(item, "callspec", None)
    return callspec is None or callspec.indices.get(value.name, 0) == value.parameter


def pytest_itemcollected(item: pytest.Item) -> None:
    """Add the markers of `FIXTURES`.

    Costs of fixtures requested at run time need explicit markers.
    """
    names: list[str] = getattr(item, "fixturenames", [])
    for name, cost in FIXTURES.items():
        if name in names:
            item.add_marker(cost)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note which test runs."""
    # Tests of pytest plugins run pytest inside a test.
    before, _STATE.item = _STATE.item, item
    try:
        return (yield)
    finally:
        _STATE.item = before


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Require the markers for fixtures that an earlier test has paid for."""
    for value, costs in _STATE.costs.items():
        if _requests(item, value):
            for cost in sorted(costs):
                _require(item, cost)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note which fixture is being set up."""
    parameter = getattr(request, "param_index", 0)
    _STATE.fixtures.append(_Value(fixturedef.baseid, fixturedef.argname, parameter))
    try:
        return (yield)
    finally:
        _STATE.fixtures.pop()
