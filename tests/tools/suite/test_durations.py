"""Slow tests need a marker of their cost."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.runs.durations import MARKERS
from tools import durations
from tools.durations import Duration

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]

ROWS = {
    "tests/a.py::test_quick": {"seconds": 0.01, "costs": []},
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


def test_limit_grows_with_the_mean_on_a_busy_machine(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = {"seconds": 2 * durations.QUIET_MEAN_S, "costs": []}
    many = {f"tests/c.py::test_{n}": quick for n in range(durations.TESTS_MIN)} | {
        "tests/a.py::test_quick": quick
    }
    recorded.write_text(json.dumps(ROWS | many))
    assert durations.main([]) == 0
    slow = {f"tests/d.py::test_{n}": {"seconds": 4.5, "costs": []} for n in range(9)}
    recorded.write_text(json.dumps(ROWS | many | slow))
    assert durations.main([]) == 1
    assert "9 of them took more than 4 s" in capsys.readouterr().out


def test_a_few_tests_do_not_stretch_the_limit(recorded: Path) -> None:
    few = {f"tests/c.py::test_{n}": {"seconds": 1.9, "costs": []} for n in range(9)}
    recorded.write_text(json.dumps(ROWS | few))
    assert durations.main([]) == 1


@pytest.mark.parametrize(("seconds", "status"), [(0.1, 0), (2.5, 1)])
def test_slow_tests_run_again(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, status: int
) -> None:
    monkeypatch.setattr(subprocess, "run", _run_again(recorded, seconds, 0))
    assert durations.main(["--again"]) == status


def _run_again(
    recorded: Path, seconds: float, status: int
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """A function like `subprocess.run` that records the slow test of `ROWS`."""

    def run(command: list[str], check: bool) -> "subprocess.CompletedProcess[str]":
        assert command[-1] == "tests/a.py::test_slow"
        row = {"seconds": seconds, "costs": []}
        recorded.write_text(json.dumps(ROWS | {command[-1]: row}))
        return subprocess.CompletedProcess(command, status)

    return run


def test_a_slow_test_that_fails_when_it_runs_again_is_a_failure(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", _run_again(recorded, 0.1, 2))
    assert durations.main(["--again", "--json"]) == 2
    assert capsys.readouterr().out == "[]\n"


def test_a_recorded_test_that_does_not_exist_is_explained(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", _run_again(recorded, 0.1, pytest.ExitCode.USAGE_ERROR))
    assert durations.main(["--again"]) == 2
    assert "has tests that do not exist: delete it and run" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "null", '{"tests/a.py::test": 1}'])
def test_damaged_record_is_an_error(
    recorded: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.write_text(text)
    assert durations.main([]) == 2
    assert "delete it" in capsys.readouterr().err


@pytest.mark.parametrize("option", [[], ["--json"], ["--again"]])
def test_a_record_without_tests_is_an_error(
    recorded: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.write_text("{}")
    assert durations.main(option) == 2
    assert "durations.json has no test: run `make test` again" in capsys.readouterr().err


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


def test_makefile_and_markers_agree() -> None:
    costly = re.search(r"^COSTLY := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert costly is not None
    assert sorted(costly[1].split(" or ")) == sorted(MARKERS)


RECORDING = """
import pytest
from pathlib import Path
from tests.support.runs import durations

durations.FILE = Path("recorded.json").absolute()
"""
TESTS = """
import pytest

def test_unmarked(): pass

@pytest.mark.jvm
class TestMarked:
    def test_in_a_class(self): pass

@pytest.mark.parametrize("value", ["a@b", pytest.param("c", marks=pytest.mark.kill)])
def test_parameters(value): pass

def test_skipped(): pytest.skip("not here")

@pytest.fixture
def broken(): raise ValueError("planted")

def test_without_its_fixture(broken): pass

def test_failed(): raise ValueError("planted")

@pytest.fixture
def broken_later():
    yield
    raise ValueError("planted")

def test_passed(broken_later): pass
"""


def test_recorded_costs_are_the_markers_of_each_test_whose_body_passed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has the name of a marker, which becomes a keyword of its tests."""
    folder = pytester.mkdir("spark")
    (folder / "conftest.py").write_text(RECORDING)
    (folder / "test_it.py").write_text(TESTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert pytester.runpytest_subprocess("-p", "tests.support.runs.durations", "spark").ret == 1
    rows = json.loads((pytester.path / "recorded.json").read_text())
    assert {name.partition("::")[2]: row["costs"] for name, row in rows.items()} == {
        "test_unmarked": [],
        "TestMarked::test_in_a_class": ["jvm"],
        "test_parameters[a@b]": [],
        "test_parameters[c]": ["kill"],
        "test_skipped": [],
        "test_passed": [],
    }
