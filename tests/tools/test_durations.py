"""Slow tests need a marker of their cost."""

import json
from pathlib import Path

import pytest

from tools import durations
from tools.durations import Duration

ROWS = {
    "tests/a.py::test_quick": {"seconds": 0.1, "costs": []},
    "tests/a.py::test_slow": {"seconds": 2.5, "costs": []},
    "tests/b.py::test_marked": {"seconds": 30.0, "costs": ["jvm"]},
}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with `ROWS`, in place of the real one."""
    file = tmp_path / "durations.json"
    file.write_text(json.dumps(ROWS))
    monkeypatch.setattr(durations, "FILE", file)
    return file


def test_slow_test_without_a_marker_fails(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert durations.main([]) == 1
    assert "tests/a.py::test_slow" in capsys.readouterr().out.partition("1 of them took more")[2]


def test_limit_is_an_option(recorded: Path) -> None:
    assert durations.main(["--limit", "2.6"]) == 0


def test_limit_grows_with_the_total_on_a_busy_machine(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {f"tests/c.py::test_{n}": {"seconds": 1.5, "costs": []} for n in range(400)}
    recorded.write_text(json.dumps(ROWS | many))
    assert durations.main([]) == 0
    recorded.write_text(json.dumps(ROWS | many | {"tests/d.py::test": {"seconds": 5, "costs": []}}))
    assert durations.main([]) == 1
    assert "1 of them took more than 4.05 s" in capsys.readouterr().out


def test_json_lists_the_slow_tests(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert durations.main(["--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert rows == [{"test": "tests/a.py::test_slow", "seconds": 2.5, "costs": []}]


def test_tests_are_sorted_by_time(recorded: Path) -> None:
    assert durations.read(recorded)[0] == Duration("tests/b.py::test_marked", 30.0, ("jvm",))


def test_missing_record_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(durations, "FILE", tmp_path / "none.json")
    assert durations.main([]) == 2
    assert "make test" in capsys.readouterr().err
