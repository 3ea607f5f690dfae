"""The command ``python -m tools.guards``: its exit status, its table, its lists and its JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.git_trees import FIRST, commit, git
from tools.guards import registry
from tools.guards.__main__ import main
from tools.guards.ceilings.file import FILE
from tools.guards.figures import Measure
from tools.guards.tree import ROOT

CLEAN = "/// Bytes on disk, header included.\npub fn size() {}\n"
ECHO = "/// The size.\npub fn size() {}\n"
PATH = "rust/log/src/a.rs"
CEILINGS = f"""\
[base]
commit = "{FIRST}"
[wide_comments]
[long_functions]
[unwraps]
[echoing_docs]
[wide_markdown]
[crowded_folders]
"""


def _run(root: Path, *arguments: str) -> int:
    return main(["--root", str(root), *arguments])


def test_a_tree_within_its_ceilings_passes_with_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: CEILINGS})
    assert _run(tmp_path, "sizes") == 0
    output, errors = capsys.readouterr()
    assert "echoing_docs            0        0  held" in output
    assert "code lines of product: Rust 1" in output
    assert errors == ""


def test_a_new_fault_fails_with_its_place_and_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: CEILINGS})
    (tmp_path / PATH).write_text(ECHO)
    assert _run(tmp_path, "sizes") == 1
    output, errors = capsys.readouterr()
    assert "echoing_docs            1        0  raised" in output
    assert "echoing_docs rust/log: raised to 1; the ceiling is 0" in errors
    assert f"{PATH}:1: 'The size.' only repeats the name size\n    state a bound" in errors


def test_a_measure_can_be_compared_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: ECHO, FILE: CEILINGS})
    assert _run(tmp_path, "unwraps") == 0
    output = capsys.readouterr().out
    assert "unwraps" in output
    assert "echoing_docs" not in output


def test_adopting_and_lowering_store_figures_and_a_raised_total_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: ECHO})
    assert _run(tmp_path, "--lower", "echoing_docs") == 1
    assert "add --adopt echoing_docs" in capsys.readouterr().err
    assert _run(tmp_path, "--adopt", "echoing_docs") == 0
    assert '[echoing_docs]\n"rust/log" = 1\n' in (tmp_path / FILE).read_text()
    (tmp_path / PATH).write_text(ECHO + ECHO)
    assert _run(tmp_path, "--lower", "echoing_docs") == 1
    assert "the total rose from 1 to 2" in capsys.readouterr().err
    (tmp_path / PATH).write_text(CLEAN)
    assert _run(tmp_path, "--lower", "echoing_docs") == 0
    assert capsys.readouterr().out == "echoing_docs: 1 → 0\n"
    assert (tmp_path / FILE).read_text().endswith("\n[echoing_docs]\n")


def test_every_finding_of_a_measure_can_be_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: ECHO * 30})
    assert _run(tmp_path, "--list", "echoing_docs") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines[::2]] == [
        f"{PATH}:{number}" for number in range(1, 60, 2)
    ]
    assert _run(tmp_path, "--list", "--json", "echoing_docs") == 0
    found = json.loads(capsys.readouterr().out)["findings"]["echoing_docs"]["rust/log"]
    assert (len(found), found[0]["path"], found[0]["line"]) == (30, PATH, 1)


def test_a_shallow_clone_states_that_its_history_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path / "full", {PATH: ECHO})
    commit(tmp_path / "full", {PATH: CLEAN, FILE: CEILINGS})
    full = tmp_path / "full"
    git(tmp_path, "clone", "--quiet", "--depth", "1", full.as_uri(), str(tmp_path / "shallow"))
    assert _run(full, "echoing_docs") == 0
    assert "not checked" not in capsys.readouterr().out
    assert _run(tmp_path / "shallow", "echoing_docs") == 0
    assert (
        "history of the ceilings: not checked before the oldest commit of this shallow clone"
        " (`git fetch --unshallow` completes it)" in capsys.readouterr().out
    )
    assert _run(tmp_path / "shallow", "--json", "echoing_docs") == 0
    assert json.loads(capsys.readouterr().out)["unchecked"].startswith("history of the ceilings")


def test_a_base_outside_the_history_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: CEILINGS.replace(FIRST, "0" * 40)})
    assert _run(tmp_path, "sizes") == 1
    assert "[base] 000000000000 is not an ancestor of HEAD" in capsys.readouterr().err


def test_json_holds_figures_ceilings_and_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: CEILINGS})
    (tmp_path / PATH).write_text(ECHO)
    assert _run(tmp_path, "--json", "echoing_docs") == 1
    result = json.loads(capsys.readouterr().out)
    assert result["measures"]["echoing_docs"] == {
        "figure": 1, "ceiling": 0, "state": "raised", "counts": {"rust/log": 1}, "report": {},
    }  # fmt: skip
    (failure,) = result["failures"]
    assert (failure["kind"], failure["key"]) == ("raised", "rust/log")
    assert failure["findings"][0]["line"] == 1
    assert result["errors"] == []


def test_a_wrong_name_is_an_error_of_usage_that_lists_the_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        _run(tmp_path, "prosa")
    assert stop.value.code == 2
    assert "no guard or measure is named prosa; there are prose, " in capsys.readouterr().err


def test_a_malformed_file_of_ceilings_fails_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: "[base"})
    assert _run(tmp_path, "sizes") == 1
    assert capsys.readouterr().err.startswith(f"{FILE}: ")


@pytest.mark.parametrize("path", [PATH, "tests/log/a.py", "docs/FORMAT.md"])
def test_a_file_that_is_not_utf_8_is_named(
    tmp_path: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {path: CLEAN, FILE: CEILINGS})
    (tmp_path / path).write_bytes("// é\n".encode("latin-1"))
    assert _run(tmp_path, "sizes") == 1
    errors = capsys.readouterr().err
    assert f"guard sizes: {path}: byte 3 is not UTF-8; save the file in UTF-8" in errors
    assert "Traceback" not in errors


def test_ceilings_that_are_not_utf_8_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: CEILINGS})
    (tmp_path / FILE).write_bytes("# é\n".encode("latin-1"))
    assert _run(tmp_path, "sizes") == 1
    assert capsys.readouterr().err.startswith(f"{FILE}: byte 2 is not UTF-8")


def test_a_missing_git_is_an_error_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {PATH: CLEAN, FILE: CEILINGS})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _run(tmp_path, "sizes") == 1
    errors = capsys.readouterr().err
    assert "guard sizes: git is missing: install it (apt-get install git)" in errors
    assert "Traceback" not in errors


def test_a_folder_outside_git_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, "sizes") == 1
    assert f"git ls-files in {tmp_path}: fatal: not a git repository" in capsys.readouterr().err


def test_a_guard_that_cannot_read_the_tree_fails_and_prevents_lowering(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {"tests/log/a.py": "def f(:\n" + "x\n" * 80, FILE: CEILINGS})
    assert _run(tmp_path, "sizes") == 1
    assert "tests/log/a.py" in capsys.readouterr().err
    assert _run(tmp_path, "--lower", "sizes") == 1
    assert "The ceilings are unchanged." in capsys.readouterr().err


def test_a_guard_must_return_the_measures_that_are_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, {PATH: CLEAN})
    monkeypatch.setattr("tools.guards.sizes.measure", lambda tree: [Measure("widths", {}, {})])
    outcome = registry.run_guard("sizes", tmp_path)
    assert outcome.error.startswith("returned ['widths'] instead of ['wide_comments', ")


def test_names_choose_guards_and_measures() -> None:
    assert registry.guards_of([]) == list(registry.GUARDS)
    assert registry.guards_of(["sleeps", "prose"]) == ["prose", "patience"]


def test_the_command_runs_as_a_module_and_explains_itself() -> None:
    command = [sys.executable, "-m", "tools.guards", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "guards and their measures:" in done.stdout
    assert "python -m tools.guards --list echoing_docs" in done.stdout


def test_guards_run_in_several_processes_and_keep_their_order(tmp_path: Path) -> None:
    commit(tmp_path, {PATH: ECHO, "tests/log/a.py": "import time\n\ntime.sleep(1)\n"})
    outcomes = registry.run(tmp_path, ["sleeps", "echoing_docs"])
    assert [outcome.error for outcome in outcomes] == ["", ""]
    found = {measure.name: measure.counts for outcome in outcomes for measure in outcome.measures}
    assert found == {"echoing_docs": {"rust/log": 1}, "sleeps": {"tests/log": 1}}
