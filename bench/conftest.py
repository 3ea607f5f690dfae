"""Rules of all benchmarks: an optimised module, a fixed seed, results checked before timing.

There are no assertions about speed: figures are read, and compared within one run. ``make bench``
first builds with the profile of the wheel (release, opt-level 3). Plain ``pytest bench`` also
accepts the profile of the tests (debug, opt-level 2) and reports it, in the header and in each
saved result.
"""

import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import pytest

from pykafka_core import _core

OPT_LEVEL_MIN = 2


class Rate(NamedTuple):
    name: str
    seconds: float
    size_bytes: int
    records: int


class Figure(NamedTuple):
    name: str
    value: float
    unit: str


RATES: list[Rate] = []
FIGURES: list[Figure] = []


class Timed(Protocol):
    def __call__(
        self, call: Callable[[], object], *, size_bytes: int = 0, records: int = 0
    ) -> None: ...


Noted = Callable[[str, float, str], None]
"""Called with name, value and unit of a figure that is not a rate."""


def pytest_configure() -> None:
    profile, opt_level = _core.__profile__
    if opt_level < OPT_LEVEL_MIN:
        raise pytest.UsageError(
            f"bench: _core was compiled by profile {profile} with opt-level {opt_level}; run `make bench`"
        )


def pytest_report_header() -> str:
    profile, opt_level = _core.__profile__
    note = "" if profile == "release" else ": the tests' profile, `make bench` times the wheel's"
    return f"_core: {profile}, opt-level {opt_level}{note}"


def pytest_benchmark_update_machine_info(machine_info: dict[str, object]) -> None:
    machine_info["core_profile"] = "{}, opt-level {}".format(*_core.__profile__)


@pytest.fixture
def timed(benchmark: Any, request: pytest.FixtureRequest) -> Iterator[Timed]:
    """Time a checked call; `size_bytes` and `records` are the work of one call."""
    kept: list[tuple[int, int]] = []

    def run(call: Callable[[], object], *, size_bytes: int = 0, records: int = 0) -> None:
        benchmark.extra_info.update(size_bytes=size_bytes, records=records)
        kept.append((size_bytes, records))
        benchmark(call)

    yield run
    if benchmark.enabled and kept:
        seconds = statistics.median(benchmark.stats.stats.data)
        RATES.append(Rate(request.node.nodeid.removeprefix("bench/"), seconds, *kept[0]))


@pytest.fixture
def noted(request: pytest.FixtureRequest) -> Noted:
    """Print a figure at the end; it is saved with the times if there are any."""

    def note(name: str, value: float, unit: str) -> None:
        FIGURES.append(Figure(name, value, unit))
        if "benchmark" in request.fixturenames:
            request.getfixturevalue("benchmark").extra_info[f"{name}, {unit}"] = value

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sections = {
        "rates, by the median": [_line(rate) for rate in RATES],
        "figures": [f"{name:<78} {value:>12.3f} {unit}" for name, value, unit in FIGURES],
    }
    for title, lines in sections.items():
        if lines:
            terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)


def _line(rate: Rate) -> str:
    parts = [f"{rate.name:<78} {rate.seconds * 1e6:>12.2f} µs"]
    if rate.size_bytes:
        parts.append(f"{rate.size_bytes / rate.seconds / 1e9:>8.2f} GB/s")
    if rate.records:
        parts.append(f"{rate.records / rate.seconds / 1e6:>8.2f} M/s")
    return " ".join(parts)
