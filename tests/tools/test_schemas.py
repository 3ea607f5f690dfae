"""The tables of Kafka's messages are those that `tools/schemas.py` writes from Kafka's jars."""

import os
from pathlib import Path

import pytest

from tests.formats.releases.corpus import HERE as RELEASES
from tests.support.java import classpath
from tools import schemas


@pytest.mark.jvm
def test_tables_and_stub_are_written_by_the_generator(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for jar in map(Path, classpath(RELEASES / "kafka-4.4").split(os.pathsep)):
        if jar.suffix == ".jar":
            (jars / jar.name).symlink_to(jar)
    written = schemas.write(jars, tmp_path)
    assert len(written) > 8
    for path in written:
        text = (schemas.ROOT / path).read_text()
        assert (tmp_path / path).read_text() == text, f"{path}: run tools/schemas.py"
