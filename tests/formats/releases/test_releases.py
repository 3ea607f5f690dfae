"""Partitions that Kafka's releases wrote in format 2: all readers return Kafka's records."""

import os
import shutil
from pathlib import Path

import pytest

from tests.formats.damaged import readers
from tests.formats.damaged.campaign import BROKERS, READERS
from tests.formats.damaged.reference import as_text
from tests.formats.damaged.results import files
from tests.formats.legacy.write import carry_out
from tests.formats.releases.corpus import DATA, HERE, expected
from tests.formats.releases.plans import plans
from tests.formats.releases.remake import read

EXPECTED = expected()
IS_WHOLE = os.environ.get("PYKAFKA_FORMATS") == "all"
"""Whether all releases write (`make formats`)."""
SAMPLE = "4.4"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_reader_returns_the_records_of_kafka(name: str, reader: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / name, tmp_path / name))
    before = files(folder)
    result = READERS[reader](folder)
    assert result.is_silent, result
    assert result.rows == EXPECTED[name]
    after = files(folder)
    assert {file: after.get(file) for file in before if file.endswith(".log")} == {
        file: data for file, data in before.items() if file.endswith(".log")
    }


@pytest.mark.parametrize("reader", BROKERS)
def test_a_broker_serves_the_records_of_kafka(reader: str, tmp_path: Path) -> None:
    copies = {name.removesuffix("-0"): tmp_path / name for name in EXPECTED}
    for copy in copies.values():
        shutil.copytree(DATA / copy.name, copy)
    for topic, result in readers.by_broker(copies, tmp_path, clean=BROKERS[reader]).items():
        assert (result.error, result.rows) == (None, EXPECTED[f"{topic}-0"]), topic


@pytest.mark.jvm
def test_the_releases_write_the_committed_bytes(tmp_path: Path) -> None:
    chosen = [plan for plan in plans() if IS_WHOLE or plan.steps[0][0] == SAMPLE]
    carry_out(HERE, tmp_path, chosen)
    names = {f"{plan.name}-0" for plan in chosen}
    assert names == {folder.name for folder in tmp_path.iterdir()}
    for name in names:
        assert files(tmp_path / name) == files(DATA / name), name


@pytest.mark.jvm
def test_kafka_reads_the_expected_records() -> None:
    assert read(DATA) == {name: as_text(rows) for name, rows in EXPECTED.items()}
