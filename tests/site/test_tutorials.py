"""Each tutorial works in an empty folder: its files, its commands, and their output.

Tests of the one with Spark, which has no commands: tests/spark/test_guides.py.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.examples import ROOT, spark_examples, without_ports
from tests.support.patience import PATIENCE_S
from tools.site.tutorial import commands, write

PAGES = sorted((ROOT / "docs/tutorials").glob("[!i]*.md"))
TUTORIALS = [page for page in PAGES if not spark_examples(page)]
TIMES = re.compile(r"\d+\.\d+s")


def _run(command: str, folder: Path) -> str:
    program, *arguments = command.split()
    assert program == "python"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": "-p no:xdist"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.load
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_tutorial_shows_the_output_of_its_commands(page: Path, tmp_path: Path) -> None:
    write(page, tmp_path)
    shown = dict(commands(page))
    assert shown
    for command, output in shown.items():
        assert _comparable(_run(command, tmp_path)) == _comparable(output), command


def _comparable(output: str) -> str:
    return TIMES.sub("TIME", without_ports(output))
