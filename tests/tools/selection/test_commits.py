"""Without a commit, `make check` compares with the one where HEAD left the main branch."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tools.git_trees import commit, git
from tests.tools.selection.repositories import changed

FIRST = {"a.txt": "1"}


def _clone(root: Path) -> tuple[Path, Path]:
    """Return a repository with a branch ``main``, and a clone of it."""
    origin, clone = root / "origin", root / "clone"
    commit(origin, FIRST)
    git(origin, "branch", "--quiet", "--move", "main")
    git(root, "clone", "--quiet", str(origin), str(clone))
    return origin, clone


def _merge(clone: Path, origin: Path, files: Mapping[str, str]) -> None:
    """Merge a newer main branch."""
    commit(origin, files)
    git(clone, "fetch", "--quiet")
    git(clone, "merge", "--quiet", "--no-edit", "origin/main")


def _assert_changed(root: Path, *names: str, since: str) -> None:
    """The files `names`, which have no tests, differ from the commit of that description."""
    done = changed(root)
    first, *others = done.stderr.splitlines()
    assert re.fullmatch(rf"{len(names)} files changed since [0-9a-f]{{12}} \({since}\)", first)
    assert others == [f"no unit test for {name}" for name in names]
    assert done.returncode == 0


def test_commit_without_a_remote_is_compared_with_its_parent(tmp_path: Path) -> None:
    commit(tmp_path / "r", FIRST)
    commit(tmp_path / "r", {"a.txt": "2"})
    since = "the parent of HEAD, as no remote has a main branch"
    _assert_changed(tmp_path / "r", "a.txt", since=since)


def test_branch_without_a_remote_is_compared_with_the_main_branch(tmp_path: Path) -> None:
    root = tmp_path / "r"
    commit(root, FIRST)
    git(root, "branch", "--quiet", "--move", "main")
    git(root, "checkout", "--quiet", "-b", "topic")
    commit(root, {"b.txt": "1"})
    commit(root, {"c.txt": "1"})
    _assert_changed(root, "b.txt", "c.txt", since="shared with heads/main")


@pytest.mark.parametrize("files", [{}, FIRST])
def test_first_commit_is_compared_with_nothing(tmp_path: Path, files: Mapping[str, str]) -> None:
    git(tmp_path, "init", "--quiet")
    if files:
        commit(tmp_path, files)
    (tmp_path / "b.txt").write_text("new")
    since = "the empty tree, as HEAD has no parent and no remote"
    _assert_changed(tmp_path, *files, "b.txt", since=since)


def test_commit_on_a_detached_head_is_checked(tmp_path: Path) -> None:
    _, clone = _clone(tmp_path)
    git(clone, "checkout", "--quiet", "--detach")
    commit(clone, {"b.txt": "1"})
    _assert_changed(clone, "b.txt", since="shared with origin/(HEAD|main)")


def test_pushed_branch_is_checked(tmp_path: Path) -> None:
    _, clone = _clone(tmp_path)
    git(clone, "checkout", "--quiet", "-b", "topic")
    commit(clone, {"b.txt": "1"})
    git(clone, "push", "--quiet", "origin", "topic")
    _assert_changed(clone, "b.txt", since="shared with origin/(HEAD|main)")


def test_pushed_main_branch_says_that_nothing_changed(tmp_path: Path) -> None:
    _, clone = _clone(tmp_path)
    _assert_changed(clone, since="shared with origin/(HEAD|main)")


def test_work_that_merged_main_twice_is_checked_alone(tmp_path: Path) -> None:
    origin, clone = _clone(tmp_path)
    git(clone, "checkout", "--quiet", "-b", "topic")
    commit(clone, {"b.txt": "1"})
    _merge(clone, origin, {"theirs.txt": "1"})
    commit(clone, {"c.txt": "1"})
    _merge(clone, origin, {"theirs.txt": "2"})
    _assert_changed(clone, "b.txt", "c.txt", since="shared with origin/(HEAD|main)")


def test_remote_without_a_main_branch_is_passed_over(tmp_path: Path) -> None:
    _, clone = _clone(tmp_path)
    git(clone, "remote", "rename", "origin", "fork")
    git(clone, "update-ref", "-d", "refs/remotes/fork/main")
    git(clone, "remote", "set-head", "fork", "--delete")
    git(clone, "checkout", "--quiet", "-b", "topic")
    commit(clone, {"b.txt": "1"})
    _assert_changed(clone, "b.txt", since="shared with heads/main")


def test_settings_of_git_do_not_matter(tmp_path: Path) -> None:
    _, clone = _clone(tmp_path)
    for name, value in (
        ("diff.noprefix", "true"),
        ("color.ui", "always"),
        ("diff.relative", "true"),
    ):
        git(clone, "config", name, value)
    commit(clone, {"b é.txt": "1"})
    _assert_changed(clone, "b é.txt", since="shared with origin/(HEAD|main)")
