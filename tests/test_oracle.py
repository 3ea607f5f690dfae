"""The list of explained differences from Apache Kafka, and the filter that reads it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = tomllib.loads((ROOT / "tests" / "oracle.toml").read_text())


SHARE = "group-kinds-do-not-mix: 2 ShareGroupDescribe v1: tested 'closed', kafka '{}'"
LOG_DIRS = "log-dirs: 4 DescribeLogDirs v4.ErrorCode: tested '1', kafka '0'"


def filtered(output: str, release: str = "4.2.1") -> tuple[int, list[str]]:
    """Exit status and lines of the filter."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "oracle_filter.py", "--release", release],
        input=output,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_each_entry_matches_our_cases_and_has_a_reason() -> None:
    for entry in TABLE["explained"]:
        assert any(re.search(entry["case"], case) for case in TABLE["cases"]), entry
        named = [release for release in TABLE["releases"] if release in entry["releases"]]
        assert entry["releases"] == named != [], entry
        for key in ("path", "values"):
            re.compile(entry.get(key, ""))
        assert entry["reason"].endswith("."), entry


def test_unexplained_difference_is_reported() -> None:
    foreign = "share-groups: 1 ShareGroupHeartbeat v1: tested 'closed', kafka '{}'\n"
    assert filtered(f"{SHARE}\n{foreign}")[0] == 0
    status, lines = filtered(f"{SHARE}\n{LOG_DIRS}\n{foreign}")
    assert (status, lines[0], lines[-1]) == (1, LOG_DIRS, "2 differences, 1 explained, 1 left")


def test_an_entry_applies_to_the_releases_that_it_names() -> None:
    setting = "describe-configs-of-topics: 1 DescribeConfigs v1.Results[0].Configs.NAME: "
    absent = setting.replace("NAME", "remote.copy.lag.ms") + "tested 'absent', kafka '{}'"
    assert filtered(absent, "4.4.0")[0] == 0
    status, lines = filtered(absent, "4.2.1")
    assert (status, lines[0]) == (1, absent)


def test_an_entry_that_explains_nothing_is_reported_for_its_releases_only() -> None:
    def stale(release: str) -> int:
        return sum(line.startswith("explains nothing: ") for line in filtered("", release)[1])

    for release in TABLE["releases"]:
        assert stale(release) == sum(release in entry["releases"] for entry in TABLE["explained"])
    assert stale("4.4.0") != stale("4.2.1")


def test_unknown_release_is_rejected() -> None:
    assert filtered(SHARE, "4.1.0") == (2, [])
