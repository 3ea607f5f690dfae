"""Small git repositories for the tests of the ceilings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.tools.module_trees import write_tree
from tools.guards.tree import Tree

_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@localhost",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@localhost",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}

_FIRST_TIME = {
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
}

FIRST = "b0401beb8df5e3131a9532f08a3a23909b780757"
"""The first commit of each repository: it has no files, and is a base for ceilings."""


def git(root: Path, *arguments: str) -> str:
    """Run git in `root`, without the settings of the user; return its output."""
    return _git(root, {}, *arguments)


def _git(root: Path, variables: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        env={**_without_git(os.environ), **_ENVIRONMENT, **variables},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def _without_git(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out variables such as ``GIT_DIR``, which would name another repository."""
    return {name: value for name, value in environment.items() if not name.startswith("GIT_")}


def commit(root: Path, files: Mapping[str, str], message: str = "test: write files") -> Tree:
    """Write files below `root`, and commit everything that is there, after `FIRST`."""
    if not (root / ".git").exists():
        root.mkdir(exist_ok=True)
        git(root, "init", "--quiet")
        _git(root, _FIRST_TIME, "commit", "--quiet", "--allow-empty", "-m", "test: start")
    write_tree(root, files)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message)
    return Tree(root)
