import fcntl
import sys
from pathlib import Path

import pytest

from tests.support.examples import ROOT
from tests.support.wheel import run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    values = f"OUT={folder}", "WHEEL_PROFILE=dev", f"PYTHONS={sys.executable}"
    # Builds of one tree write the same file on their way.
    with (ROOT / "Cargo.toml").open(encoding="utf-8") as tree:
        fcntl.flock(tree, fcntl.LOCK_EX)
        run("make", "-s", "-o", ".venv/ready", "wheel", *values, folder=ROOT)
    (wheel,) = folder.iterdir()
    return wheel
