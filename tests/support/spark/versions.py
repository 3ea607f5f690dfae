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
"""A patch number above all published ones of a minor version."""


def pins() -> list[SpecifierSet]:
    """Return the versions of PySpark in pyproject.toml: in the extra, then in the developers'
    group.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extra = project["project"]["optional-dependencies"]["spark"]
    group = [one for one in project["dependency-groups"]["dev"] if isinstance(one, str)]
    found = map(Requirement, [*extra, *group])
    return [one.specifier for one in found if one.name == "pyspark"]


def allowed_minors() -> list[str]:
    """Return all minor versions that the extra allows, such as ["4.2", "4.3"].

    Raises:
        AssertionError: The extra has no lowest and highest version within one major version.
    """
    pin = pins()[0]
    least = next(one.version for one in pin if one.operator == ">=")
    major, first = map(int, least.split(".")[:2])
    minors = [f"{major}.{minor}" for minor in range(first, first + 100)]
    allowed = list(takewhile(lambda minor: f"{minor}.{NEWEST_PATCH}" in pin, minors))
    assert 0 < len(allowed) < len(minors), f"pyspark{pin} has no end in Spark {major}"
    return allowed


def pyspark_of(minor: str) -> Path:
    """Return a folder with a PySpark of this minor version and its py4j, for the start of
    PYTHONPATH.

    The newest one is downloaded (430 MB) by the first call, and kept in `target`, where it uses 490
    MB.
    """
    target = ROOT / "target"
    found = target / f"pyspark-{minor}"
    with alone(target / "pyspark"):
        if not found.exists():
            with TemporaryDirectory(dir=target) as name:
                made = Path(name) / "made"
                install = sys.executable, "-m", "pip", "install", "-q", "--target", str(made)
                subprocess.run([*install, f"pyspark=={minor}.*"], check=True)
                made.rename(found)  # last, so that an incomplete download is not used
    return found
