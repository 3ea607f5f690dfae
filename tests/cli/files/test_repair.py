"""``repair`` cuts at the same offset as Apache Kafka, but only after a confirmation."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core.errors import MetadataError, StorageError
from pykafka_core.log import Log
from tests.support.cli import run

Capture = pytest.CaptureFixture[str]
GOLDEN = Path(__file__).parents[2] / "formats" / "golden" / "killed"
DAMAGED = "bad-crc-early-0"
CUT_AT = 4800
"""A position in the golden metadata log between two records of topics."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory of Apache Kafka after a kill, with damaged files, which its damage.json
    describes.
    """
    copy = tmp_path / "data"
    shutil.copytree(GOLDEN / "data", copy, copy_function=shutil.copyfile)
    for directory in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    return copy


def content(directory: Path) -> dict[Path, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")
    return {path: path.read_bytes() for path in files}


def sizes(partition: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in partition.glob("*.log")}


def sizes_of_kafka(partition: str) -> dict[str, int]:
    facts: dict[str, Any] = json.loads((GOLDEN / "expected" / f"{partition}.json").read_text())
    return {f"{one['base_offset']:020}.log": one["size"] for one in facts["segments"]}


def test_nothing_is_cut_without_consent(data: Path, capsys: Capture) -> None:
    before = content(data)
    assert run("repair", data / DAMAGED) == 1
    assert content(data) == before
    out, errors = capsys.readouterr()
    assert out.splitlines() == [
        f"{data / DAMAGED}: damaged: valid batches follow a damaged one at offset 100",
        "  would remove: offsets 100 to 119, 2,340 bytes",
        "    00000000000000000100.log from position 0",
    ]
    assert "nothing was cut" in errors
    assert "--yes" in errors


def test_damaged_partition_is_cut_where_kafka_cuts_it(data: Path) -> None:
    with Log.open(data / DAMAGED, read_only=True) as log:
        assert (log.damaged_at, log.log_end_offset) == (100, 100)
    assert run("repair", data / DAMAGED, "--yes") == 0
    assert sizes(data / DAMAGED) == sizes_of_kafka(DAMAGED)
    with Log.open(data / DAMAGED) as log:
        assert (log.damaged_at, log.log_end_offset) == (None, 100)
        assert log.append([(b"k", b"v")]).first_offset == 100


def test_a_data_directory_is_repaired_as_a_whole(data: Path, capsys: Capture) -> None:
    assert run("repair", data, "--yes", "--json") == 0
    cuts = {cut["partition"]: cut for cut in json.loads(capsys.readouterr().out)}
    assert [name for name, cut in cuts.items() if cut["damaged"]] == [DAMAGED]
    assert cuts["torn-batch-0"]["bytes"] == 240
    for partition in cuts:
        assert sizes(data / partition) == sizes_of_kafka(partition), partition
    assert run("repair", data) == 0
    assert capsys.readouterr().out.endswith("partitions are intact\n")


def test_checkpoints_do_not_exceed_the_cut(data: Path) -> None:
    assert run("repair", data, "--yes") == 0
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        rows = dict(line.rsplit(" ", 1) for line in (data / name).read_text().splitlines()[2:])
        assert int(rows.get("bad-crc-early 0", "0")) <= 100


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("", 1), ("no", 1)])
def test_repair_asks_at_a_terminal(
    data: Path, answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    before = content(data)
    assert run("repair", data / DAMAGED) == code
    assert (content(data) == before) == bool(code)


def test_open_directory_is_not_repaired(data: Path, capsys: Capture) -> None:
    with Log.open(data / "untouched-0"):
        assert run("repair", data, "--yes") == 1
        assert run("repair", data / DAMAGED, "--yes") == 1
    errors = capsys.readouterr().err
    assert errors.count("stop the broker") == 2


def test_segments_after_the_damage_are_deleted_whole(tmp_path: Path, capsys: Capture) -> None:
    partition = tmp_path / "events-0"
    with Log.open(partition) as log:
        for _ in range(3):
            log.append([(b"k", b"v")])
            log.roll()
        log.append([(b"k", b"v")])
    path = partition / f"{1:020}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert run("repair", partition, "--yes") == 0
    out = capsys.readouterr().out
    assert "offsets 1 to 3" in out
    assert f"{2:020}.log, the whole file\n    {3:020}.log, the whole file" in out
    assert "repaired 1 partition\n" in out
    with Log.open(partition) as log:
        assert log.log_end_offset == 1


@pytest.mark.parametrize("name", ["none", "empty"])
def test_path_without_log_directories_is_wrong_usage(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    assert run("repair", tmp_path / name) == 2


def test_lost_synced_records_are_named_and_need_consent(tmp_path: Path, capsys: Capture) -> None:
    """After the deletion of a segment the log seemed whole, and its offsets were assigned again."""
    partition = tmp_path / "events-0"
    with Log.open(partition) as log:
        for _ in range(2):
            log.append([(b"k", b"v")])
            log.roll()
        log.append([(b"k", b"v")])
    (partition / f"{2:020}.log").unlink()
    for _ in range(2):
        with Log.open(partition) as log:
            assert (log.damaged_at, log.log_end_offset) == (2, 2)
            with pytest.raises(StorageError, match="offsets below 3 were synced"):
                log.append([(b"k", b"v")])
    assert run("repair", partition, "--yes") == 0
    assert "damaged: it ends at offset 2, but offsets below 3" in capsys.readouterr().out
    with Log.open(partition) as log:
        assert (log.damaged_at, log.append([(b"k", b"v")]).first_offset) == (None, 2)


def without(partition: Path, *segments: int) -> None:
    """Create a log of five records in five segments, and delete all files of some segments."""
    with Log.open(partition) as log:
        for _ in range(4):
            log.append([(b"k", b"v")])
            log.roll()
        log.append([(b"k", b"v")])
    for path in (path for segment in segments for path in partition.glob(f"{segment:020}.*")):
        path.unlink()


def test_records_after_a_gap_are_kept_on_request(tmp_path: Path, capsys: Capture) -> None:
    partition = tmp_path / "events-0"
    without(partition, 1)
    assert run("repair", partition, "--json") == 1
    (cut,) = json.loads(capsys.readouterr().out)
    assert (cut["log_end_offset"], cut["kept_from"], cut["offsets"]) == (1, 2, 3)
    assert run("repair", partition, "--keep", "--yes") == 0
    assert "with --keep, would keep: 3 offsets from 2" in capsys.readouterr().out
    with Log.open(partition) as log:
        assert (log.damaged_at, log.log_end_offset) == (None, 5)
        assert [record.offset for record in log] == [0, 2, 3, 4]


def test_gap_after_a_kept_one_is_named_before_anything_is_reported_as_repaired(
    tmp_path: Path, capsys: Capture
) -> None:
    partition = tmp_path / "events-0"
    without(partition, 1, 3)
    assert run("repair", partition, "--keep", "--yes") == 1
    out, errors = capsys.readouterr()
    assert "repaired" not in out
    assert (
        f"{partition} is not intact yet: damaged: offsets 3 to 3 were synced and are gone" in errors
    )
    assert run("repair", partition, "--keep", "--yes") == 0
    assert "repaired 1 partition\n" in capsys.readouterr().out
    with Log.open(partition) as log:
        assert [record.offset for record in log] == [0, 2, 4]
        assert log.append([(b"k", b"v")]).first_offset == 5


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_missing_or_empty_partition_is_repaired_by_its_name(
    data: Path, is_missing: bool, capsys: Capture
) -> None:
    """The broker's message names the partition's directory."""
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\nlost 0 30\n")
    if not is_missing:
        (data / "lost-0").mkdir()
    assert run("repair", data / "lost-0", "--yes") == 0
    assert "it ends at offset 0, but offsets below 30 were synced" in capsys.readouterr().out
    with Log.open(data / "lost-0") as log:
        assert (log.damaged_at, log.append([(b"k", b"v")]).first_offset) == (None, 0)


def damage_metadata(data: Path, at: int) -> tuple[Path, bytes]:
    """Change a byte of the metadata log; return its segment and the previous content."""
    path = data / "__cluster_metadata-0" / f"{0:020}.log"
    before = path.read_bytes()
    path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
    return path, before


def test_a_cut_of_the_metadata_log_names_the_directories_that_become_strays(
    data: Path, capsys: Capture
) -> None:
    path, before = damage_metadata(data, CUT_AT)
    metadata = path.parent
    assert run("repair", metadata) == 1
    out = capsys.readouterr().out
    assert "topics created after the cut will be unknown" in out
    assert "-stray; they are kept with all their records" in out
    assert "    untouched-0 would be set aside\n" in out
    assert run("repair", data, "--json") == 1
    cuts = {cut["partition"]: cut for cut in json.loads(capsys.readouterr().out)}
    assert {"untouched-0", "grouped-2"} <= set(cuts[metadata.name]["strays"])
    assert cuts[DAMAGED]["strays"] == []
    # Topics are also lost if the end of the log is missing, although there is nothing to cut.
    path.write_bytes(before[:CUT_AT])
    run("repair", metadata)
    assert "    untouched-0 would be set aside\n" in capsys.readouterr().out
    path.write_bytes(before)
    run("repair", data)
    assert "unknown" not in capsys.readouterr().out


def test_cut_that_leaves_no_topic_warns_that_the_next_start_is_rejected(
    data: Path, capsys: Capture
) -> None:
    path, _ = damage_metadata(data, 100)
    metadata = path.parent
    assert run("repair", metadata) == 1
    out = capsys.readouterr().out
    assert f"the next start will fail: {data} holds " in out
    assert f"move their directories out of {data}" in out
    assert "-stray" not in out
    assert run("repair", data, "--json") == 1
    cuts = {cut["partition"]: cut for cut in json.loads(capsys.readouterr().out)}
    assert cuts[metadata.name]["strays"] == []
    assert cuts[metadata.name]["start_refused"].startswith(f"{data} holds ")
    assert cuts[DAMAGED]["start_refused"] is None
    run("repair", metadata, "--yes")
    with pytest.raises(MetadataError, match="contains none of their topics"):
        Broker(data)
