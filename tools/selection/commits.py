"""The commit with which a work tree is compared, and the files that differ from it."""

from __future__ import annotations

from typing import NamedTuple

from tools.guards.tree import GitError, Tree

MAIN_BRANCHES = ("main", "master")


class Base(NamedTuple):
    """A commit, and why it is the one to compare with."""

    commit: str
    reason: str


def base(tree: Tree) -> Base:
    """Return the commit where HEAD left the main branch: a remote's, or else this repository's.

    Where there is none, it is the parent of HEAD, or the empty tree in place of a parent.

    Raises:
        GitError: The tree is not under git.
    """
    head = _commit(tree, "HEAD")
    forks = [fork for branch in _mains_of_remotes(tree) if (fork := _fork(tree, branch))]
    if head and forks:
        return min(forks, key=lambda fork: _distance(tree, fork.commit))
    for branch in MAIN_BRANCHES if head else ():
        if (fork := _fork(tree, f"refs/heads/{branch}")) and fork.commit != head:
            return fork
    if parent := _commit(tree, "HEAD^"):
        return Base(parent, "the parent of HEAD, as no remote has a main branch")
    return Base(_empty_tree(tree), "the empty tree, as HEAD has no parent and no remote")


def _mains_of_remotes(tree: Tree) -> list[str]:
    listed = tree.git("for-each-ref", "--format=%(refname)", "refs/remotes").split()
    return [name for name in listed if name.count("/") == 3 and name.endswith(_ENDS)]


_ENDS = tuple(f"/{name}" for name in ("HEAD", *MAIN_BRANCHES))


def _fork(tree: Tree, branch: str) -> Base | None:
    """Return the newest commit that HEAD and a branch share."""
    try:
        found = tree.git("merge-base", "HEAD", branch).strip()
    except GitError:
        return None
    return Base(found, f"shared with {branch.removeprefix('refs/').removeprefix('remotes/')}")


def _distance(tree: Tree, commit: str) -> int:
    return int(tree.git("rev-list", "--count", f"{commit}..HEAD"))


def _commit(tree: Tree, name: str) -> str | None:
    try:
        return tree.git("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}").strip()
    except GitError:
        return None


def _empty_tree(tree: Tree) -> str:
    return tree.git("hash-object", "-t", "tree", "/dev/null").strip()


def changed_paths(tree: Tree, commit: str) -> list[str]:
    """Return the files that differ from `commit`, new and deleted ones too.

    Raises:
        GitError: There is no such commit.
    """
    how = ("--name-only", "--no-relative", "--no-renames", "-z", "--end-of-options")
    listed = tree.git("diff", *how, commit, "--")
    new = tree.git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted(set(filter(None, (listed + new).split("\0"))))
