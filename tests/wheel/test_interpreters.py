"""Interpreters for which `make wheel` builds."""

import sys
from pathlib import Path

import pytest

from tools.wheels import located


def test_interpreter_is_found_by_its_name_and_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path(sys.executable)
    monkeypatch.setenv("PATH", str(python.parent))
    assert located(python.name) == located(str(python)) == python


def test_missing_interpreter_is_refused_before_a_build(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no interpreter python9 was found"):
        located("python9")
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SystemExit, match="does not run"):
        located(str(broken))
