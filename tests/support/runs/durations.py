"""Records how long each test took, with its markers of cost, in ``target/durations.json``.

`tools/durations.py` reads the file and fails for slow tests without a marker. A run adds its tests,
without those that failed, to those of earlier runs, so the file covers the suite after ``make
test-all``. `tests/conftest.py` loads this plugin.
"""

import json
from pathlib import Path

import pytest

from tests.support.costs import CAUSES

FILE = Path(__file__).resolve().parents[3] / "target" / "durations.json"
MARKERS = (*CAUSES, "interval", "load", "campaign")

TEST, COSTS = "test", "costs"
"""Properties of a report: the name without the suffix of pytest-xdist, and the markers of cost."""

_SECONDS: dict[str, float] = {}
_COSTS: dict[str, list[str]] = {}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Store the name of a test for its reports."""
    item.user_properties.append((TEST, item.nodeid))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Store the markers of a test for its reports, whose keywords hold names of folders too."""
    costs = [marker for marker in MARKERS if item.get_closest_marker(marker)]
    item.user_properties.append((COSTS, costs))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the setup and the body of a test that passes; its teardown closes what it has used."""
    properties = dict(report.user_properties)
    if report.when == "teardown" or report.skipped or TEST not in properties:
        return
    name = str(properties[TEST])
    if report.failed:
        _SECONDS.pop(name, None)
        return
    _SECONDS[name] = _SECONDS.get(name, 0.0) + report.duration
    _COSTS[name] = list(properties.get(COSTS, ()))  # type: ignore[call-overload]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file once, in the process that has the reports of all workers."""
    if hasattr(session.config, "workerinput") or not _SECONDS:
        return
    recorded = _recorded()
    for name, seconds in _SECONDS.items():
        recorded[name] = {"seconds": round(seconds, 3), "costs": _COSTS[name]}
    FILE.parent.mkdir(exist_ok=True)
    part = FILE.with_suffix(".part")
    part.write_text(json.dumps(recorded, indent=0, sort_keys=True))
    part.replace(FILE)


def _recorded() -> dict[str, object]:
    """Read the file; an absent or damaged file is empty, because each run can write it again."""
    try:
        rows = json.loads(FILE.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return rows if isinstance(rows, dict) else {}
