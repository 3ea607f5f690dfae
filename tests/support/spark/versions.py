"""The minor versions of PySpark that the extra `spark` allows, and a copy of each."""

import subprocess
import sys
import tomllib
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.support.processes.alone import alone

ROOT = Path(__file__).resolve().parents[3]
NEWEST_PATCH = 999
"""Of a minor version: above all that are published, and below the next minor version."""


def pins() -> list[SpecifierSet]:
    """What pyproject.toml says of PySpark: the extra, then the developers' group."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extra = project["project"]["optional-dependencies"]["spark"]
    found = map(Requirement, [*extra, *project["dependency-groups"]["dev"]])
    return [one.specifier for one in found if one.name == "pyspark"]


def allowed_minors() -> list[str]:
    """All that the extra allows, such as ["4.2", "4.3"].

    Raises:
        AssertionError: It has no least and no greatest one within one major version.
    """
    pin = pins()[0]
    least = next(one.version for one in pin if one.operator == ">=")
    major, first = map(int, least.split(".")[:2])
    minors = [f"{major}.{minor}" for minor in range(first, first + 100)]
    allowed = list(takewhile(lambda minor: f"{minor}.{NEWEST_PATCH}" in pin, minors))
    assert 0 < len(allowed) < len(minors), f"pyspark{pin} has no end in Spark {major}"
    return allowed


def pyspark_of(minor: str) -> Path:
    """A folder with a PySpark of this minor version and its py4j, for the beginning of PYTHONPATH.

    The newest one is downloaded (430 MB) when first asked for, and kept in `target`, where it takes 490 MB.
    """
    target = ROOT / "target"
    found = target / f"pyspark-{minor}"
    with alone(target / "pyspark"):
        if not found.exists():
            with TemporaryDirectory(dir=target) as name:
                made = Path(name) / "made"
                install = sys.executable, "-m", "pip", "install", "-q", "--target", str(made)
                subprocess.run([*install, f"pyspark=={minor}.*"], check=True)
                made.rename(found)  # a download that broke off is none
    return found
