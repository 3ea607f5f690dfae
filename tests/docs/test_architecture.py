"""ARCHITECTURE.md names files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The folders to which the paths of the map may be relative: the map names a folder once, and then
# files in that folder.
ROOMS = [
    ROOT,
    *(ROOT / "rust" / crate / "src" for crate in ("broker", "log", "record", "wire", "bindings")),
    ROOT / "pykafka_core",
    ROOT / "pykafka_core/broker",
    ROOT / "pykafka_core/broker/runtime",
    ROOT / "pykafka_core/handlers",
    ROOT / "pykafka_core/metadata",
    ROOT / "pykafka_core/metadata/image",
    ROOT / "pykafka_core/idempotent",
    ROOT / "rust/record/src/compression",
    ROOT / "spark_udfs",
    ROOT / "tests",
]
PATHS = re.findall(r"`([\w/]+\.(?:rs|py|pyi|txt|md|toml))`", (ROOT / "ARCHITECTURE.md").read_text())


@pytest.mark.parametrize("path", sorted({path for path in PATHS if "NAME" not in path}))
def test_the_map_names_a_file_that_exists(path: str) -> None:
    assert any((room / path).exists() for room in ROOMS)


def test_the_map_names_files() -> None:
    assert len(PATHS) > 30
