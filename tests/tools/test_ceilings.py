"""A figure must equal its ceiling; only a lower or equal total can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tools.git_trees import FIRST, commit, git
from tests.tools.module_trees import write_tree
from tools.guards.ceilings import FINDINGS_MAX, compare, lower
from tools.guards.ceilings.changes import since, since_last_change_of
from tools.guards.ceilings.file import FILE, CeilingsError, load
from tools.guards.ceilings.history import History
from tools.guards.figures import Finding, Measure
from tools.guards.tree import Tree

BASE = f'[base]\ncommit = "{FIRST}"\n'
CEILINGS = BASE + '[sleeps]\n"tests/broker" = 2\n"tests/log" = 1\n'
BROKER, LOG = "tests/broker/test_a.py", "tests/log/test_b.py"
FILES = {BROKER: "one\ntwo\nthree\n", LOG: "one\n", FILE: CEILINGS}


def _sleeps(*places: tuple[str, int]) -> Measure:
    """A measure with one finding at each place; the key is the folder."""
    findings: dict[str, list[Finding]] = {}
    for path, line in places:
        finding = Finding(path, line, f"sleep {line}", "wait for an event")
        findings.setdefault(path.rpartition("/")[0], []).append(finding)
    return Measure("sleeps", {key: len(found) for key, found in findings.items()}, findings)


HELD = ((BROKER, 1), (BROKER, 2), (LOG, 1))


def _tables(tree: Tree) -> Mapping[str, Mapping[str, int]]:
    return load(tree).tables


def test_figures_that_equal_their_ceilings_pass(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, FILES)
    assert compare(tree, [_sleeps(*HELD)]) == []


def test_a_raised_figure_shows_the_finding_on_the_changed_line_alone(tmp_path: Path) -> None:
    tree = commit(tmp_path, FILES)
    (tmp_path / BROKER).write_text("one\ntwo\nthree, changed\n")
    (failure,) = compare(tree, [_sleeps(*HELD, (BROKER, 3))])
    assert (failure.kind, failure.measure, failure.key) == ("raised", "sleeps", "tests/broker")
    assert failure.message == "raised to 3; the ceiling is 2"
    assert [(found.path, found.line) for found in failure.findings] == [(BROKER, 3)]
    assert f"{BROKER}:3: sleep 3\n    wait for an event" in str(failure)


def test_a_change_that_is_committed_counts_until_the_ceilings_change(tmp_path: Path) -> None:
    commit(tmp_path, FILES)
    tree = commit(tmp_path, {BROKER: "one\ntwo\nthree, changed\n"})
    (failure,) = compare(tree, [_sleeps(*HELD, (BROKER, 3))])
    assert [found.line for found in failure.findings] == [3]
    tree = commit(tmp_path, {FILE: CEILINGS + "# held\n"})
    changes = since_last_change_of(tree, FILE)
    assert changes is not None
    assert not changes.lines


def test_every_line_of_an_untracked_file_is_new(tmp_path: Path) -> None:
    tree = commit(tmp_path, FILES)
    new = "tests/broker/test_new.py"
    (tmp_path / new).write_text("one\n")
    (failure,) = compare(tree, [_sleeps(*HELD, (new, 1))])
    assert [(found.path, found.line) for found in failure.findings] == [(new, 1)]


def test_without_a_changed_line_the_first_findings_of_the_key_are_shown(tmp_path: Path) -> None:
    tree = commit(tmp_path, FILES)
    places = [(BROKER, line) for line in range(1, FINDINGS_MAX + 6)]
    (failure,) = compare(tree, [_sleeps(*places, (LOG, 1))])
    assert [found.line for found in failure.findings] == list(range(1, FINDINGS_MAX + 1))
    assert "… and 5 more: python -m tools.guards --list sleeps" in str(failure)


def test_a_raised_figure_is_explained_without_any_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "tools").mkdir()
    (tmp_path / FILE).write_text(CEILINGS)
    (failure,) = compare(Tree(tmp_path), [_sleeps(*HELD, (BROKER, 3))])
    assert [found.line for found in failure.findings] == [1, 2, 3]


def test_a_figure_below_its_ceiling_fails_until_it_is_stored(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, FILES)
    lowered = _sleeps((BROKER, 1), (BROKER, 2))
    (failure,) = compare(tree, [lowered])
    assert (failure.kind, failure.key) == ("lower", "tests/log")
    assert failure.message == "0, below the ceiling of 1; lower it: run `make ceilings`"
    assert lower(tree, [lowered]) == ["sleeps: 3 → 2"]
    assert _tables(tree) == {"sleeps": {"tests/broker": 2}}
    assert compare(tree, [lowered]) == []


def test_a_key_without_a_ceiling_has_the_ceiling_0(tmp_path: Path) -> None:
    tree = commit(tmp_path, FILES)
    (failure,) = compare(tree, [_sleeps(*HELD, ("tests/cli/test_c.py", 1))])
    assert (failure.key, failure.message) == ("tests/cli", "raised to 1; the ceiling is 0")


def test_faults_that_move_to_another_folder_are_accepted_by_lowering(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, FILES)
    moved = _sleeps((BROKER, 1), ("tests/cli/test_a.py", 2), (LOG, 1))
    by_key = {failure.key: failure for failure in compare(tree, [moved])}
    assert {key: failure.kind for key, failure in by_key.items()} == {
        "tests/broker": "lower", "tests/cli": "raised",
    }  # fmt: skip
    assert by_key["tests/cli"].message.endswith(
        "the total is not higher: if code moved, run `make ceilings`"
    )
    lower(tree, [moved])
    assert _tables(tree)["sleeps"] == {"tests/broker": 1, "tests/cli": 1, "tests/log": 1}


def test_a_raised_total_cannot_be_stored(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, FILES)
    with pytest.raises(CeilingsError, match="sleeps: the total rose from 3 to 4") as error:
        lower(tree, [_sleeps((BROKER, 1), *[(LOG, line) for line in (1, 2, 3)])])
    assert f"{FILE} is unchanged" in str(error.value)
    assert (tmp_path / FILE).read_text() == CEILINGS


def test_one_raised_total_prevents_the_lowering_of_all_others(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {**FILES, FILE: CEILINGS + '[other]\n"x" = 5\n'})
    with pytest.raises(CeilingsError, match="sleeps: the total rose"):
        lower(tree, [_sleeps(*HELD, (LOG, 2)), Measure("other", {}, {})])
    assert _tables(tree)["other"] == {"x": 5}


def test_a_table_that_no_guard_measures_fails(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {**FILES, FILE: CEILINGS + '[naps]\n"tests/log" = 1\n'})
    (failure,) = compare(tree, [_sleeps(*HELD)])
    assert (failure.kind, failure.measure) == ("unknown", "naps")
    assert "no guard measures this; delete its table" in str(failure)
    assert compare(tree, [_sleeps(*HELD)], known=["sleeps", "naps"]) == []


def test_a_new_measure_is_adopted_once_and_by_name(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {**FILES, FILE: BASE})
    (failure,) = compare(tree, [_sleeps(*HELD)])
    assert failure.kind == "new"
    assert "python -m tools.guards --adopt sleeps" in failure.message
    with pytest.raises(CeilingsError, match="add --adopt sleeps"):
        lower(tree, [_sleeps(*HELD)])
    assert lower(tree, [_sleeps(*HELD)], ["sleeps"]) == ["sleeps: adopted 3"]
    assert compare(tree, [_sleeps(*HELD)]) == []
    with pytest.raises(CeilingsError, match="has a table already"):
        lower(tree, [_sleeps(*HELD, (LOG, 2))], ["sleeps"])


def test_a_measure_that_fell_to_0_keeps_its_table_and_cannot_be_adopted_again(
    tmp_path: Path,
) -> None:
    tree = write_tree(tmp_path, FILES)
    lower(tree, [_sleeps()])
    assert _tables(tree) == {"sleeps": {}}
    with pytest.raises(CeilingsError, match="has a table already"):
        lower(tree, [_sleeps(*HELD)], ["sleeps"])


def test_the_first_file_starts_at_the_current_commit(tmp_path: Path) -> None:
    tree = commit(tmp_path, {BROKER: "one\n"})
    lower(tree, [_sleeps((BROKER, 1))], ["sleeps"])
    assert load(tree).base == git(tmp_path, "rev-parse", "HEAD").strip()
    assert _tables(tree) == {"sleeps": {"tests/broker": 1}}


def test_lowering_sorts_the_file_and_keeps_its_comments(tmp_path: Path) -> None:
    text = """\
# About the file.
[base]
commit = "abcabcabcabcabcabcabcabcabcabcabcabcabca" # the base
[sleeps] # beside the table
"tests/log" = 1 # beside the key
# above the key
"tests/broker" = 1_000

# above the table
[blocks]
"b" = 2
"a" = 1
# the end
"""
    tree = write_tree(tmp_path, {**FILES, FILE: text})
    lower(tree, [_sleeps((BROKER, 1), (LOG, 1))])
    assert (
        (tmp_path / FILE).read_text()
        == """\
# About the file.
[base]
commit = "abcabcabcabcabcabcabcabcabcabcabcabcabca"  # the base

# above the table
[blocks]
"a" = 1
"b" = 2

[sleeps]  # beside the table
# above the key
"tests/broker" = 1
"tests/log" = 1  # beside the key
# the end
"""
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[sleeps]\n"a" = 1\n', "[base] needs commit"),
        ('[base]\ncommit = "HEAD"\n', "[base] needs commit"),
        ('[base]\ncommit = ""\n', "[base] needs commit"),
        (
            BASE + '[sleeps]\n"a" = -1\n',
            "'a' must be a count from 0, not -1",
        ),
        (
            BASE + '[sleeps]\n"a" = true\n',
            "'a' must be a count from 0, not True",
        ),
        (
            BASE + '[sleeps]\n"a" = 1.5\n',
            "'a' must be a count from 0, not 1.5",
        ),
        (
            'sleeps = 1\n[base]\ncommit = "abcabcabcabcabcabcabcabcabcabcabcabcabca"\n',
            "sleeps is outside a table",
        ),
        ("[base\n", "at line 1"),
    ],
)
def test_a_malformed_file_is_refused_with_the_entry(
    tmp_path: Path, text: str, message: str
) -> None:
    tree = write_tree(tmp_path, {FILE: text})
    with pytest.raises(CeilingsError) as error:
        load(tree)
    assert message in str(error.value)
    assert str(error.value).startswith(FILE)


@pytest.mark.parametrize("key", ['a "b" \\ é', "docs/😀.md", "a\x7fb", "a\u2028b", "a\tb\x85"])
def test_a_key_of_any_characters_survives_a_rewrite(tmp_path: Path, key: str) -> None:
    tree = write_tree(tmp_path, {FILE: BASE + "# about this measure\n[odd]\n"})
    lower(tree, [Measure("odd", {}, {}), Measure("new", {key: 1}, {})], ["new"])
    assert _tables(tree)["new"] == {key: 1}
    lower(tree, [Measure("odd", {}, {}), Measure("new", {key: 1}, {})])
    assert _tables(tree)["new"] == {key: 1}
    assert "# about this measure\n[odd]" in (tmp_path / FILE).read_text()


# Changes


def test_text_that_looks_like_a_diff_does_not_mislead_the_reader_of_diffs(tmp_path: Path) -> None:
    tree = commit(tmp_path, {"a.txt": "-- a/b.txt\nkept\nend", "b.txt": "one\n"})
    (tmp_path / "a.txt").write_text("++ b/c.txt\nkept\n@@ -1 +90 @@\nend\n")
    (tmp_path / "b.txt").write_text("one\ntwo\n")
    changes = since(tree, "HEAD")
    assert changes.lines == {"a.txt": {1, 3, 4}, "b.txt": {2}}


def test_a_renamed_file_is_new_and_its_old_lines_are_not(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20))
    tree = commit(tmp_path, {"old/a.py": text})
    (tmp_path / "new").mkdir()
    git(tmp_path, "mv", "old/a.py", "new/a.py")
    (tmp_path / "new/a.py").write_text(text + "line 20\n")
    changes = since(tree, "HEAD")
    assert changes.added == {"new/a.py"}
    assert not changes.include(Finding("new/a.py", 20, "", ""))
    assert changes.include(Finding("new/a.py", 21, "", ""))
    assert changes.include(Finding("new/a.py", 18, "", "", last_line=25))
    assert changes.include(Finding("new/a.py", 0, "", ""))
    assert changes.include(Finding("new", 0, "", ""))
    assert not changes.include(Finding("old", 0, "", ""))


def test_a_changed_file_is_not_a_new_one(tmp_path: Path) -> None:
    tree = commit(tmp_path, {"a/é.py": "one\n"})
    (tmp_path / "a/é.py").write_text("two\n")
    changes = since(tree, "HEAD")
    assert changes.include(Finding("a/é.py", 1, "", ""))
    assert not changes.include(Finding("a/é.py", 0, "", ""))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.follow", "true"), ("log.showSignature", "true"), ("diff.interHunkContext", "9"),
        ("diff.context", "9"), ("diff.noPrefix", "true"), ("diff.orderFile", "missing"),
        ("diff.a.textconv", "tac"), ("core.quotePath", "true"), ("core.abbrev", "5"),
    ],
)  # fmt: skip
def test_the_settings_of_a_user_change_no_result(tmp_path: Path, name: str, value: str) -> None:
    text = "".join(f"line {number}\n" for number in range(9))
    path = "tests/é.py"
    attributes = {".gitattributes": "*.py diff=a\n"}
    commit(tmp_path, {path: text, FILE: BASE + '[sleeps]\n"tests" = 2\n', **attributes})
    commit(tmp_path, {"other": "a commit between the versions of the file\n"})
    commit(tmp_path, {FILE: BASE + '[sleeps]\n"tests" = 3\n'})
    tree = commit(tmp_path, {"other": "the last commit\n"})
    (tmp_path / path).write_text(text.replace("1", "one").replace("5", "five"))
    git(tmp_path, "config", name, value)
    assert since(tree, "HEAD").lines == {path: {2, 6}}
    (failure,) = _raised(tree)
    assert "raises the total of sleeps from 2 to 3" in failure


def test_a_replaced_commit_hides_no_version_of_the_file(tmp_path: Path) -> None:
    commit(tmp_path, {FILE: BASE + '[sleeps]\n"tests" = 2\n'})
    commit(tmp_path, {FILE: BASE + '[sleeps]\n"tests" = 3\n'})
    tree = commit(tmp_path, {"other": "the last commit\n"})
    git(tmp_path, "replace", "--graft", "HEAD~1")
    (failure,) = _raised(tree)
    assert "raises the total of sleeps from 2 to 3" in failure


@pytest.mark.parametrize("missing", ["blob:none", "tree:0"])
def test_a_version_of_the_file_that_cannot_be_read_is_an_error(
    tmp_path: Path, missing: str
) -> None:
    full, partial = tmp_path / "full", tmp_path / "partial"
    commit(full, {FILE: BASE + '[sleeps]\n"tests" = 2\n'})
    commit(full, {FILE: BASE + '[sleeps]\n"tests" = 3\n'})
    commit(full, {FILE: BASE + '[sleeps]\n"tests" = 3\n', "other": "the last commit\n"})
    git(full, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", f"--filter={missing}", full.as_uri(), str(partial))
    full.rename(tmp_path / "unreachable")
    (failure,) = _raised(Tree(partial))
    assert "history of the ceilings: not read to its end" in failure
    (tmp_path / "unreachable").rename(full)
    (failure,) = _raised(Tree(partial))
    assert "raises the total of sleeps from 2 to 3" in failure


def test_a_file_that_was_deleted_keeps_its_totals(tmp_path: Path) -> None:
    commit(tmp_path, {FILE: BASE + '[sleeps]\n"tests" = 2\n', "other": "kept\n"})
    (tmp_path / FILE).unlink()
    commit(tmp_path, {})
    (failure,) = _raised(commit(tmp_path, {FILE: BASE + '[sleeps]\n"tests" = 3\n'}))
    assert "raises the total of sleeps from 2 to 3" in failure


def _with_base(root: Path, tables: str) -> str:
    """Ceilings whose base is the first commit of the repository."""
    first = git(root, "rev-list", "--max-parents=0", "HEAD").strip()
    return f'[base]\ncommit = "{first}"\n{tables}'


def _raised(tree: Tree) -> list[str]:
    return History(tree).raised_totals(load(tree))


def test_a_commit_that_raises_a_total_is_rejected(tmp_path: Path) -> None:
    commit(tmp_path, {BROKER: "one\n"})
    commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"tests" = 2\n')})
    tree = commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"tests" = 3\n')})
    raising = git(tmp_path, "log", "-1", "--format=%h").strip()
    (failure,) = _raised(tree)
    assert f"commit {raising} raises the total of sleeps from 2 to 3" in failure
    # A later correction does not hide the commit.
    lowered = _with_base(tmp_path, '[sleeps]\n"tests" = 1\n')
    assert _raised(commit(tmp_path, {FILE: lowered})) == [failure]


def test_a_commit_that_raises_a_total_is_rejected_wherever_the_base_is(tmp_path: Path) -> None:
    commit(tmp_path, {BROKER: "one\n"})
    commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"tests" = 2\n')})
    raised = '[sleeps]\n"tests" = 3\n'
    commit(tmp_path, {FILE: _with_base(tmp_path, raised)})
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    (failure,) = _raised(commit(tmp_path, {FILE: f'[base]\ncommit = "{head}"\n{raised}'}))
    assert "raises the total of sleeps from 2 to 3" in failure


def test_the_table_of_a_measure_cannot_be_removed_and_adopted_with_a_higher_total(
    tmp_path: Path,
) -> None:
    commit(tmp_path, {BROKER: "one\n"})
    commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"tests" = 2\n')})
    tree = commit(tmp_path, {FILE: _with_base(tmp_path, "")})
    (missing,) = compare(tree, [_sleeps(*HELD)])
    assert missing.kind == "new"
    adopted = commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"tests" = 3\n')})
    (failure,) = _raised(adopted)
    assert "raises the total of sleeps from 2 to 3" in failure


def _branches(root: Path, ours: str, theirs: str, merged: str) -> Tree:
    """A merge of two branches whose tables differ from those of their common parent."""
    commit(root, {BROKER: "one\n"})
    common = '[sleeps]\n"tests" = 2\n[wide]\n"a" = 9\n'
    commit(root, {FILE: _with_base(root, common)})
    git(root, "checkout", "--quiet", "-b", "theirs")
    commit(root, {FILE: _with_base(root, theirs)})
    git(root, "checkout", "--quiet", "-")
    commit(root, {FILE: _with_base(root, ours)})
    git(root, "merge", "--quiet", "--no-commit", "--strategy", "ours", "theirs")
    return commit(root, {FILE: _with_base(root, merged)})


LOWER_SLEEPS = '[sleeps]\n"tests" = 1\n[wide]\n"a" = 9\n'
LOWER_WIDE = '[sleeps]\n"tests" = 2\n[wide]\n"a" = 7\n'
LOWER_BOTH = '[sleeps]\n"tests" = 1\n[wide]\n"a" = 7\n'


def test_branches_that_lower_different_measures_can_be_merged(tmp_path: Path) -> None:
    assert _raised(_branches(tmp_path, LOWER_SLEEPS, LOWER_WIDE, LOWER_BOTH)) == []


@pytest.mark.parametrize(
    ("merged", "raised"),
    [(LOWER_SLEEPS, "wide from 7 to 9"), (LOWER_WIDE, "sleeps from 1 to 2")],
)
def test_a_merge_may_not_exceed_the_lowest_total_of_its_parents(
    tmp_path: Path, merged: str, raised: str
) -> None:
    (failure,) = _raised(_branches(tmp_path, LOWER_SLEEPS, LOWER_WIDE, merged))
    assert f"raises the total of {raised}" in failure


def test_moved_faults_new_measures_and_missing_histories_are_accepted(tmp_path: Path) -> None:
    commit(tmp_path, {BROKER: "one\n"})
    commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"old" = 2\n')})
    tree = commit(tmp_path, {FILE: _with_base(tmp_path, '[sleeps]\n"new" = 2\n[wide]\n"a" = 9\n')})
    assert _raised(tree) == []
    assert _raised(write_tree(tmp_path / "other", FILES)) == []


# The base


def _wrong_bases(tree: Tree) -> list[str]:
    return History(tree).wrong_bases(load(tree))


def _file_with_base(base: str) -> dict[str, str]:
    return {FILE: f'[base]\ncommit = "{base}"\n[sleeps]\n"tests" = 2\n'}


def _head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD").strip()


def test_a_base_may_move_to_an_earlier_commit_alone(tmp_path: Path) -> None:
    commit(tmp_path, {BROKER: "one\n"}, "Hides what is told")
    head = _head(tmp_path)
    assert _wrong_bases(commit(tmp_path, _file_with_base(head))) == []
    tree = commit(tmp_path, _file_with_base(FIRST))
    assert _wrong_bases(tree) == []
    (tmp_path / FILE).write_text(_file_with_base(head)[FILE])
    (failure,) = _wrong_bases(tree)
    assert f"the work tree moves [base] from {FIRST[:12]} to {head[:12]}" in failure
    assert _wrong_bases(commit(tmp_path, _file_with_base(head))) == [
        failure.replace("the work tree", f"commit {_head(tmp_path)[:7]}")
    ]


def test_a_base_that_moved_stays_an_error_after_it_was_deleted(tmp_path: Path) -> None:
    commit(tmp_path, _file_with_base(FIRST))
    (tmp_path / FILE).unlink()
    commit(tmp_path, {BROKER: "one\n"}, "Hides what is told")
    (failure,) = _wrong_bases(commit(tmp_path, _file_with_base(_head(tmp_path))))
    assert f"moves [base] from {FIRST[:12]}" in failure


def test_a_merge_keeps_the_earlier_base_of_its_branches(tmp_path: Path) -> None:
    commit(tmp_path, {BROKER: "one\n"})
    later = _head(tmp_path)
    commit(tmp_path, _file_with_base(later))
    git(tmp_path, "checkout", "--quiet", "-b", "earlier")
    commit(tmp_path, _file_with_base(FIRST))
    git(tmp_path, "checkout", "--quiet", "-")
    commit(tmp_path, {LOG: "one\n"})
    git(tmp_path, "merge", "--quiet", "--no-commit", "--strategy", "ours", "earlier")
    (failure,) = _wrong_bases(commit(tmp_path, _file_with_base(later)))
    assert f"moves [base] from {FIRST[:12]} to {later[:12]}" in failure


def test_a_base_outside_the_history_is_an_error(tmp_path: Path) -> None:
    tree = commit(tmp_path, _file_with_base("0" * 40))
    assert _wrong_bases(tree) == [
        f"{FILE}: [base] {'0' * 12} is not an ancestor of HEAD; correct it"
    ]
    git(tmp_path, "checkout", "--quiet", "-b", "other", FIRST)
    commit(tmp_path, {BROKER: "one\n"})
    other = _head(tmp_path)
    git(tmp_path, "checkout", "--quiet", "-")
    (tmp_path / FILE).write_text(_file_with_base(other)[FILE])
    assert any(f"{other[:12]} is not an ancestor of HEAD" in fault for fault in _wrong_bases(tree))


def test_a_copy_without_history_accepts_a_base_that_it_lacks(tmp_path: Path) -> None:
    full, shallow = tmp_path / "full", tmp_path / "shallow"
    commit(full, _file_with_base(FIRST))
    git(tmp_path, "clone", "--quiet", "--depth=1", full.as_uri(), str(shallow))
    assert _wrong_bases(Tree(shallow)) == []
    exported = write_tree(tmp_path / "exported", FILES | _file_with_base("0" * 40))
    git(tmp_path / "exported", "init", "--quiet")
    git(tmp_path / "exported", "add", ".")
    git(tmp_path / "exported", "commit", "--quiet", "-m", "x")
    assert _wrong_bases(exported) == []
    assert _wrong_bases(write_tree(tmp_path / "other", FILES)) == []
