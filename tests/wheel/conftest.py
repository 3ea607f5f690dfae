"""The wheel of the current sources. Test processes and later runs share one build."""

import hashlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.costs import charge
from tests.support.examples import ROOT
from tests.support.processes.alone import alone
from tests.support.wheel import run

BUILT = ROOT / "target" / "wheels"
"""The newest wheel is in one folder, whose name is the digest of the sources."""
FOLDERS = ("pykafka_core", "spark_udfs", "pyx", "rust")
FILES = (
    *("pyproject.toml", "Cargo.toml", "Cargo.lock", "Makefile", "tools/wheels.py"),
    *("README.md", "LICENSE", "NOTICE"),
)
NOT_SOURCES = {"__pycache__", "fuzz", "tests"}


def sources() -> Iterator[Path]:
    """Files that a wheel contains or is compiled from, in a fixed order."""
    yield from (ROOT / name for name in FILES)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_source = path.is_file() and path.suffix != ".so"
            if is_source and NOT_SOURCES.isdisjoint(path.relative_to(ROOT).parts):
                yield path


def digest() -> str:
    """Return a name for this interpreter and the contents of all sources."""
    found = hashlib.sha256(sys.version.encode())
    for path in sources():
        content = path.read_bytes()
        found.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()[:16]


def build(folder: Path) -> None:
    """Pack what `make build` compiled; ``folder`` exists only if that succeeds."""
    with TemporaryDirectory(dir=BUILT) as temporary:
        made = Path(temporary) / "made"
        values = f"OUT={made}", "WHEEL_PROFILE=dev", f"PYTHONS={sys.executable}"
        run("make", "-s", "-o", ".venv/wheel", "wheel", *values, folder=ROOT)
        made.rename(folder)


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Return the wheel; build it unless a wheel with the digest of the sources exists."""
    charge("wheel")
    with alone(BUILT):
        folder = BUILT / digest()
        if not folder.exists():
            for stale in BUILT.glob("*/"):
                shutil.rmtree(stale)
            build(folder)
    (found,) = folder.glob("*.whl")
    return found
