"""A `[[raised]]` entry permits one commit to raise the total of one measure to one figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools.git_trees import FIRST, commit, git
from tests.tools.module_trees import write_tree
from tools.guards.__main__ import main
from tools.guards.ceilings import lower
from tools.guards.ceilings.file import FILE, CeilingsError, load
from tools.guards.ceilings.history import History
from tools.guards.figures import Measure
from tools.guards.tree import Tree

BASE = f'[base]\ncommit = "{FIRST}"\n'
SUBJECT = 'Revert "log: wait for an event"'


def _entry(total: int, subject: str = SUBJECT, measure: str = "sleeps") -> str:
    return (
        f'[[raised]]\nmeasure = "{measure}"\ntotal = {total}\n'
        f"commit = '{subject}'\nreason = \"the event is lost on old kernels\"\n"
    )


def _file(sleeps: int, *entries: str, wide: int = 5) -> dict[str, str]:
    tables = f'[sleeps]\n"tests/log" = {sleeps}\n[wide]\n"tests" = {wide}\n'
    return {FILE: BASE + "".join(entries) + tables}


def _store(root: Path, content: dict[str, str], subject: str = "tools: lower ceilings") -> Tree:
    return commit(root, content, subject)


def _faults(tree: Tree) -> list[str]:
    return History(tree).raised_totals(load(tree))


def _stale(tree: Tree) -> list[str]:
    return History(tree).stale(load(tree))


def test_the_revert_of_a_commit_that_lowered_a_ceiling_is_accepted_with_an_entry(
    tmp_path: Path,
) -> None:
    _store(tmp_path, _file(3))
    _store(tmp_path, _file(2), "log: wait for an event")
    git(tmp_path, "-c", "user.name=t", "-c", "user.email=t@t", "revert", "--no-edit", "HEAD")
    (fault,) = _faults(Tree(tmp_path))
    assert "raises the total of sleeps from 2 to 3; correct the faults" in fault
    assert json.dumps(f"commit = {json.dumps(SUBJECT)}")[1:-1] in json.dumps(fault)
    write_tree(tmp_path, _file(3, _entry(3)))
    git(tmp_path, "commit", "--quiet", "--all", "--amend", "--no-edit")
    assert _faults(Tree(tmp_path)) == []
    assert _stale(Tree(tmp_path)) == []


def test_an_entry_is_enough_before_its_commit_exists(tmp_path: Path) -> None:
    _store(tmp_path, _file(2))
    assert _faults(write_tree(tmp_path, _file(3)))
    assert _faults(write_tree(tmp_path, _file(3, _entry(3)))) == []


@pytest.mark.parametrize(
    ("content", "subject"),
    [
        pytest.param(_file(4, _entry(3)), SUBJECT, id="a higher total"),
        pytest.param(_file(3, _entry(4)), SUBJECT, id="a lower total"),
        pytest.param(_file(3, _entry(3)), "log: sleep again", id="another commit"),
        pytest.param(_file(3, _entry(3, measure="wide")), SUBJECT, id="another measure"),
        pytest.param(_file(3, _entry(3), wide=6), SUBJECT, id="one more measure"),
    ],
)
def test_an_entry_permits_one_total_of_one_measure_in_one_commit(
    tmp_path: Path, content: dict[str, str], subject: str
) -> None:
    _store(tmp_path, _file(2))
    (fault,) = _faults(_store(tmp_path, content, subject))
    assert "raises the total of" in fault


def test_an_entry_permits_nothing_in_another_commit(tmp_path: Path) -> None:
    _store(tmp_path, _file(2))
    _store(tmp_path, _file(2, _entry(3)), SUBJECT)
    (fault,) = _faults(_store(tmp_path, _file(3, _entry(3)), SUBJECT))
    assert "raises the total of sleeps from 2 to 3" in fault


def test_an_entry_whose_total_is_changed_permits_nothing(tmp_path: Path) -> None:
    _store(tmp_path, _file(2))
    _store(tmp_path, _file(3, _entry(3)), SUBJECT)
    (fault,) = _faults(_store(tmp_path, _file(4, _entry(4)), SUBJECT))
    assert "raises the total of sleeps from 3 to 4" in fault


def test_an_entry_that_is_removed_later_stays_valid_for_its_commit(tmp_path: Path) -> None:
    _store(tmp_path, _file(2))
    _store(tmp_path, _file(3, _entry(3)), SUBJECT)
    assert _faults(_store(tmp_path, _file(2))) == []


def _merge(root: Path, ours: dict[str, str], merged: dict[str, str], subject: str) -> Tree:
    """A merge of `ours` and a branch whose commit raises the total of sleeps from 2 to 3."""
    _store(root, _file(2))
    git(root, "checkout", "--quiet", "-b", "theirs")
    _store(root, _file(3, _entry(3)), SUBJECT)
    git(root, "checkout", "--quiet", "-")
    _store(root, ours)
    git(root, "merge", "--quiet", "--no-commit", "--strategy", "ours", "theirs")
    return _store(root, merged, subject)


def test_a_merge_inherits_the_entry_of_a_branch(tmp_path: Path) -> None:
    merged = _file(3, _entry(3), wide=4)
    tree = _merge(tmp_path, _file(2, wide=4), merged, "Merge branch 'theirs'")
    assert _faults(tree) == []
    (fault,) = _faults(_store(tmp_path, _file(4, _entry(3), wide=4), SUBJECT))
    assert "raises the total of sleeps from 3 to 4" in fault


def test_a_merge_may_not_exceed_the_total_of_the_branch_with_the_entry(tmp_path: Path) -> None:
    merged = _file(4, _entry(3), wide=4)
    (fault,) = _faults(_merge(tmp_path, _file(2, wide=4), merged, "Merge branch 'theirs'"))
    assert "raises the total of sleeps from 3 to 4" in fault


def test_a_merge_can_have_its_own_entry(tmp_path: Path) -> None:
    subject = "log: merge two branches"
    merged = _file(2, _entry(2, subject))
    assert _faults(_merge(tmp_path, _file(1), merged, subject)) == []


def test_an_entry_is_stale_once_the_total_is_no_higher_than_before_it(tmp_path: Path) -> None:
    _store(tmp_path, _file(2))
    _store(tmp_path, _file(4, _entry(4)), SUBJECT)
    assert _stale(_store(tmp_path, _file(3, _entry(4)))) == []
    (stale,) = _stale(_store(tmp_path, _file(2, _entry(4))))
    assert f"entry of sleeps for {SUBJECT!r} is stale: the total is 2, and was 2 before" in stale
    assert stale.endswith("delete the entry")


@pytest.mark.parametrize("measure", ["sleeps", "naps"])
def test_an_entry_that_raises_nothing_is_stale_before_it_is_committed(
    tmp_path: Path, measure: str
) -> None:
    _store(tmp_path, _file(2))
    assert len(_stale(write_tree(tmp_path, _file(2, _entry(3, measure=measure))))) == 1


def test_an_entry_for_a_new_measure_is_stale(tmp_path: Path) -> None:
    commit(tmp_path, {FILE: BASE + '[wide]\n"tests" = 5\n'})
    assert len(_stale(_store(tmp_path, _file(3, _entry(3)), SUBJECT))) == 1


def test_without_a_history_no_entry_is_called_stale(tmp_path: Path) -> None:
    full = tmp_path / "full"
    _store(full, _file(2))
    _store(full, _file(3, _entry(3)), SUBJECT)
    git(tmp_path, "clone", "--quiet", "--depth", "1", full.as_uri(), str(tmp_path / "shallow"))
    assert _stale(Tree(tmp_path / "shallow")) == []
    assert _stale(write_tree(tmp_path / "plain", _file(3, _entry(3)))) == []


def test_a_raised_total_can_be_stored_with_a_new_entry_that_names_it(tmp_path: Path) -> None:
    sleeps = Measure("sleeps", {"tests/log": 3}, {})
    tree = _store(tmp_path, _file(2))
    with pytest.raises(CeilingsError, match=r"rose from 2 to 3.* has no new .* entry for it"):
        lower(tree, [sleeps])
    write_tree(tmp_path, _file(2, _entry(4)))
    with pytest.raises(CeilingsError, match="sleeps: the total rose from 2 to 3"):
        lower(tree, [sleeps])
    write_tree(tmp_path, _file(2, _entry(3)))
    assert lower(tree, [sleeps]) == ["sleeps: 2 → 3"]
    assert _faults(tree) == []
    _store(tmp_path, {}, SUBJECT)
    _store(tmp_path, _file(2, _entry(3)))
    with pytest.raises(CeilingsError, match="sleeps: the total rose from 2 to 3"):
        lower(tree, [sleeps])


def test_storing_keeps_the_entries_and_their_comments(tmp_path: Path) -> None:
    text = f"""\
{BASE}
# above the first
[[raised]]  # beside the first
measure = "sleeps"
total = 3  # beside the total
commit = "Revert \\"log: é\\""  # beside the commit
reason = "one #1"

# above the second
[[raised]]
measure = "sleeps"
total = 4
commit = "log: sleep"
reason = "two"

[sleeps]
"tests/log" = 1
"""
    tree = write_tree(tmp_path, {FILE: text.replace('"two"', '"""\ntwo"""')})
    lower(tree, [Measure("sleeps", {"tests/log": 1}, {})])
    assert (tmp_path / FILE).read_text() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[raised]\nmeasure = "sleeps"\n', "write [[raised]]"),
        ("raised = [1]\n", "entry 1 needs a measure, a total"),
        ('[[raised]]\nmeasure = "sleeps"\ntotal = 3\ncommit = "a: b"\n', "entry 1 needs"),
        (_entry(3).replace('"the event is lost on old kernels"', '""'), "entry 1 needs"),
        (_entry(3).replace("total = 3", "total = true"), "entry 1 needs"),
        (_entry(3) + 'key = "tests/log"\n', "entry 1 needs"),
        (_entry(3) + _entry(4), "entry 2 repeats ('sleeps'"),
    ],
)
def test_a_malformed_entry_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CeilingsError) as error:
        load(write_tree(tmp_path, {FILE: text + BASE}))
    assert message in str(error.value)


def test_the_command_prints_entries_and_fails_for_a_stale_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, sleep = "tests/log/a.py", "import time\n\ntime.sleep(1)\n"
    arguments = ["--root", str(tmp_path), "sleeps"]
    commit(tmp_path, {FILE: BASE + "[sleeps]\n"})
    raised = f'{BASE}{_entry(1)}[sleeps]\n"tests/log" = 1\n'
    commit(tmp_path, {path: sleep, FILE: raised}, SUBJECT)
    assert main(arguments) == 0
    printed = f"sleeps, raised to 1 by {SUBJECT!r}: the event is lost on old kernels"
    assert printed in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["raised"]
    assert (entry["measure"], entry["total"], entry["commit"]) == ("sleeps", 1, SUBJECT)
    write_tree(tmp_path, {path: "", FILE: f"{BASE}{_entry(1)}[sleeps]\n"})
    assert main(arguments) == 1
    assert "is stale" in capsys.readouterr().err
