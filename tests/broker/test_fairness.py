"""`python -m bench.fairness`, only with this broker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.load
@pytest.mark.parametrize(
    ("scenario", "probes"),
    [
        ("one write of 3 s", {"ApiVersions", "one record"}),
        ("never join again", {"Heartbeat"}),
    ],
)
def test_a_short_run_gives_figures_of_each_probe_under_load(
    tmp_path: Path, scenario: str, probes: set[str]
) -> None:
    figures = tmp_path / "figures.json"
    options = [
        "--without",
        "kafka",
        "--rounds",
        "1",
        "--seconds",
        "0.2",
        "--only",
        scenario,
    ]
    subprocess.run(
        [sys.executable, "-m", "bench.fairness", *options, "--json", str(figures)],
        cwd=ROOT,
        check=True,
    )
    rows = json.loads(figures.read_text())["results"]
    assert {(row["peer"], row["probe"]) for row in rows} == {("ours", probe) for probe in probes}
    assert all(0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in rows)
