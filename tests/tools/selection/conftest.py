from pathlib import Path

import pytest

from tests.tools.git_trees import commit
from tests.tools.selection.repositories import FILES


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit of `FILES`."""
    root = tmp_path / "repository"
    commit(root, FILES)
    return root
