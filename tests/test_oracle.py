"""The list of explained differences from Apache Kafka, and the filter that reads it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = tomllib.loads((ROOT / "tests" / "oracle.toml").read_text())


def filtered(output: str) -> tuple[int, list[str]]:
    """Exit status and lines of the filter."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "oracle_filter.py"],
        input=output,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_each_entry_is_about_cases_of_ours_and_says_why() -> None:
    for entry in TABLE["explained"]:
        assert any(re.search(entry["case"], case) for case in TABLE["cases"]), entry
        for key in ("path", "values"):
            re.compile(entry.get(key, ""))
        assert entry["reason"].endswith("."), entry


def test_a_difference_that_no_entry_explains_is_left() -> None:
    explained = "group-kinds-do-not-mix: 2 ShareGroupDescribe v1: tested 'closed', kafka '{}'\n"
    new = "log-dirs: 4 DescribeLogDirs v4.ErrorCode: tested '1', kafka '0'"
    foreign = "share-groups: 1 ShareGroupHeartbeat v1: tested 'closed', kafka '{}'\n"
    assert filtered(explained + foreign)[0] == 0
    status, lines = filtered(explained + new + "\n" + foreign)
    assert (status, lines[0], lines[-1]) == (1, new, "2 differences, 1 explained, 1 left")
