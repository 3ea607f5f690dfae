"""The corpus is what Kafka's releases write; its JSON is what Kafka 4.2.1 says of it."""

import hashlib
import os
import random
from pathlib import Path

import pytest

from tests.formats.legacy.answers import answers, ask
from tests.formats.legacy.batches import CODECS, Codec, Row, decoded, encoded, random_partition
from tests.formats.legacy.corpus import DATA, Case, cases, dumped
from tests.formats.legacy.plans import plans
from tests.formats.legacy.write import write
from tests.support.patience import seconds

CASES = {case.name: case for case in cases()}
OLD_FORMATS_END = {"v0-v1-v2-segments": 56, "v0-v1-v2-one-segment": 56, "v1-v2-transactions": 12}
"""The first offset in format 2, which `batches` does not decode."""

IS_WHOLE = os.environ.get("PYKAFKA_FORMATS") == "all"
"""Whether all releases write, and Kafka is asked about all partitions (`make formats`)."""
SAMPLE = "4.2.1"
SAMPLES = ["v0-lz4", "v1-gzip", "v0-v1-v2-one-segment"]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_plain_python_reads_the_same_records_as_kafka(case: Case) -> None:
    found: list[Row] = []
    for segment in case.facts["segments"]:
        data = (case.directory / f"{segment['base_offset']:020}.log").read_bytes()
        old = (batch for batch in segment["batches"] if batch["magic"] < 2)
        found += decoded(data[: sum(batch["size"] for batch in old)])
    end = OLD_FORMATS_END.get(case.name, 1 << 62)
    assert found == [row for row in case.records if row.offset < end]


def test_every_fetch_returned_bytes_of_a_file_from_the_batch_with_its_offset(case: Case) -> None:
    segments = {segment["base_offset"]: segment["batches"] for segment in case.facts["segments"]}
    fetches = [fetch for fetch in case.facts["fetches"] if fetch["size"]]
    assert fetches
    for fetch in fetches:
        data = (case.directory / f"{fetch['segment']:020}.log").read_bytes()[fetch["position"] :]
        assert hashlib.sha256(data[: fetch["size"]]).hexdigest() == fetch["sha256"]
        later = [b for b in segments[fetch["segment"]] if b["last_offset"] >= fetch["offset"]]
        assert fetch["position"] == later[0]["position"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_decoding_reverses_encoding(magic: int, codec: Codec) -> None:
    times = (5, 3) if magic == 1 else (-1, -1)
    kind = "CreateTime" if magic == 1 else "NoTimestampType"
    records = [Row(7, times[0], kind, b"", None), Row(10, times[1], kind, None, b"a" * 500)]
    assert list(decoded(encoded(records, magic, codec))) == records


@pytest.mark.jvm
def test_kafka_reads_the_partitions_of_the_encoder(tmp_path: Path) -> None:
    partitions = {
        tmp_path / str(seed): random_partition(random.Random(seed), tmp_path / str(seed), (0, 1))
        for seed in range(20)
    }
    logs = sorted(str(log) for log in tmp_path.glob("*/*.log"))
    batches = ask({"files": logs})
    for directory, records in partitions.items():
        own = [batches[log] for log in logs if Path(log).parent == directory]
        offsets = [offset for segment in own for batch in segment for offset in batch["offsets"]]
        assert offsets == [record.offset for record in records]


@pytest.mark.jvm
def test_the_releases_write_the_committed_bytes(tmp_path: Path) -> None:
    chosen = [plan for plan in plans() if IS_WHOLE or {step[0] for step in plan.steps} == {SAMPLE}]
    write(tmp_path, chosen)
    names = {f"{plan.name}-0" for plan in chosen}
    assert names
    expected = files(DATA)
    assert files(tmp_path) == {
        path: expected[path] for path in expected if path.split("/")[0] in names
    }


@pytest.mark.jvm
@pytest.mark.timeout(seconds(1200))
def test_kafka_answers_as_the_json_says(tmp_path: Path) -> None:
    names = list(CASES) if IS_WHOLE else SAMPLES
    data = tmp_path / "corpus"
    data.mkdir()
    for name in names:
        CASES[name].copy_to(data)
    found = answers(data, tmp_path)
    assert sorted(found) == sorted(names)
    for name, facts in found.items():
        assert dumped(facts) == dumped(CASES[name].facts), name
