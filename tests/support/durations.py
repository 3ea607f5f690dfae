"""Records how long each test took, with its markers of cost, in ``target/durations.json``.

`tools/durations.py` reads the file and fails for slow tests without a marker. A run adds its tests
to those of earlier runs, so the file covers the suite after ``make test-all``. `tests/conftest.py`
imports the hooks.
"""

import json
from pathlib import Path

import pytest

from tests.support.costs import CAUSES

FILE = Path(__file__).resolve().parents[2] / "target" / "durations.json"
MARKERS = (*CAUSES, "interval", "load", "campaign")

_SECONDS: dict[str, float] = {}
_COSTS: dict[str, list[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the setup and the body of a test; its teardown closes what it has used."""
    if report.when != "teardown":
        name = report.nodeid.partition("@")[0]  # xdist appends the group
        _SECONDS[name] = _SECONDS.get(name, 0.0) + report.duration
        _COSTS[name] = [marker for marker in MARKERS if marker in report.keywords]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file once, in the process that has the reports of all workers."""
    if hasattr(session.config, "workerinput") or not _SECONDS:
        return
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name, seconds in _SECONDS.items():
        recorded[name] = {"seconds": round(seconds, 3), "costs": _COSTS[name]}
    FILE.parent.mkdir(exist_ok=True)
    part = FILE.with_suffix(".part")
    part.write_text(json.dumps(recorded, indent=0, sort_keys=True))
    part.replace(FILE)
