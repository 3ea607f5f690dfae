"""``dump-log`` has the same output as Kafka's DumpLogSegments for the same files."""

import json
import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from pykafka_core._core import build_batch
from pykafka_core.cli import main
from pykafka_core.cli.files.batches import batch_headers
from pykafka_core.cli.files.dump_files import DUMPS, Fault

Capture = pytest.CaptureFixture[str]


GOLDEN = Path(__file__).parents[2] / "formats" / "golden"
KAFKA = Path(__file__).parents[1] / "golden" / "DumpLogSegments.txt"
"""The output of Kafka 4.2.1 for golden files with --print-data-log, without the directories'
paths."""


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["dump-log", *map(str, arguments)])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_every_line_equals_that_of_kafka(capsys: Capture) -> None:
    root = GOLDEN / "clean" / "data"
    expected = KAFKA.read_bytes().decode().split("\n")
    files = [line.removeprefix("Dumping ") for line in expected if line.startswith("Dumping ")]
    assert run("--print-data-log", *(root / file for file in files)) == 0
    found = capsys.readouterr().out.replace(f"{root}/", "").split("\n")
    assert [comparable(line) for line in found] == [comparable(line) for line in expected]


def comparable(line: str) -> str:
    """Return the line without trailing spaces, and with one replacement character for each run:
    Java and Python replace different numbers of invalid bytes.
    """
    return re.sub("\ufffd+", "\ufffd", line.rstrip())


def test_files_of_kafka_have_no_fault(capsys: Capture) -> None:
    partitions = [path.parent for path in (GOLDEN / "clean" / "data").glob("*/*.log")]
    assert run("--verify", "--deep-iteration", *sorted(set(partitions))) == 0
    assert capsys.readouterr().out == ""


def test_json_rows_name_their_file(tmp_path: Path, capsys: Capture) -> None:
    path = segment(tmp_path)
    assert run("--print-data-log", "--json", path) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["file"] for row in rows} == {str(path)}
    assert [row["payload"] for row in rows if "offset" in row] == ["v"] * 6


def test_missing_or_invalid_log_is_reported(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path) == 2
    assert run(tmp_path / "x.log") == 2
    assert run(tmp_path / f"{0:020}.log") == 1
    assert "No such file" in capsys.readouterr().err


def segment(directory: Path) -> Path:
    path = directory / "00000000000000000005.log"
    batches = [build_batch([(b"k", b"v")] * 3, base_offset=o, leader_epoch=0) for o in (5, 8)]
    path.write_bytes(b"".join(batches) + bytes(4096))
    return path


def test_batches_are_printed_in_the_format_of_kafka(tmp_path: Path, capsys: Capture) -> None:
    path = segment(tmp_path)
    assert run(path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 5"]
    assert lines[2].startswith(
        "baseOffset: 5 lastOffset: 7 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1 "
        "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
        "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: -1 size: "
    )
    assert lines[2].endswith(" isvalid: true")
    assert len(lines) == 4


def test_a_changed_byte_is_a_fault(tmp_path: Path, capsys: Capture) -> None:
    path = segment(tmp_path)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    assert run("--verify", path) == 1
    out, errors = capsys.readouterr()
    assert out == f"{path}: batch at 0 does not match its CRC\n"
    assert "1 fault found" in errors


def test_segment_that_is_replaced_after_a_batch_is_dumped_to_its_end(tmp_path: Path) -> None:
    path = segment(tmp_path)
    expected = list(DUMPS[".log"](path, True, True))
    rows = DUMPS[".log"](path, True, True)
    found = [next(rows)]
    shorter(path).replace(path)
    assert [*found, *rows] == expected


def test_batches_of_a_segment_that_is_replaced_after_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment(tmp_path)
    expected = list(batch_headers(path))
    opened, other = path.open("rb"), shorter(path)

    def open_and_replace(path: Path, _mode: str) -> BinaryIO:
        other.replace(path)
        return opened

    monkeypatch.setattr(Path, "open", open_and_replace)
    assert list(batch_headers(path)) == expected


class Writer:
    """A broker that completes a batch after its bytes were looked at."""

    def __init__(self, path: Path, position: int) -> None:
        self.path, self.position = path, position
        self._read = os.pread

    def pread(self, descriptor: int, size: int, position: int) -> bytes:
        data = self._read(descriptor, size, position)
        if position == self.position:
            self.write(BATCH)
        return data

    def write(self, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(self.position)
            file.write(data)


BATCH = build_batch([(b"k", b"v" * 100)], base_offset=11, leader_epoch=0)


@pytest.mark.parametrize("preallocated", [0, 1_000])
@pytest.mark.parametrize("cut", [10, 18, 40, 61, 100])
def test_a_batch_that_is_being_written_is_not_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int, preallocated: int
) -> None:
    path = segment(tmp_path)
    *_, last = batch_headers(path)
    end = last.position + last.size
    os.truncate(path, end)
    writer = Writer(path, end)
    writer.write(BATCH[:cut] + bytes(preallocated))
    monkeypatch.setattr(os, "pread", writer.pread)
    rows = list(DUMPS[".log"](path, False, False))
    assert [row for row in rows if isinstance(row, Fault)] == []
    assert [row["isvalid"] for row in rows if not isinstance(row, Fault)][-1] is True


def test_an_index_that_a_compaction_replaces_has_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment(tmp_path)
    index = path.with_suffix(".index")
    path.write_bytes(BATCH)
    index.touch()
    old, new = struct.pack(">ii", 2, 0), struct.pack(">ii", 6, 0)
    looks = iter([old, new])
    monkeypatch.setattr(Path, "read_bytes", lambda _: next(looks))
    assert list(DUMPS[".index"](index, False, False)) == [{"offset": 11, "position": 0}]


OFFSET_ENTRY = struct.Struct(">ii")
APPENDS_MAX = 100


class Growing:
    """A broker that appends a batch and its index entry in each pause of the command."""

    def __init__(self, log: Path, entry: Callable[[int, int], bytes] = OFFSET_ENTRY.pack) -> None:
        self.log, self.index, self.entry = log, log.with_suffix(".index"), entry
        self.position, self.offset, self.appends = log.stat().st_size, 11, 0

    def pause(self, _seconds: float) -> None:
        self.appends += 1
        assert self.appends < APPENDS_MAX, "the command does not end while the file grows"
        batch = build_batch([(b"k", b"v" * 100)], base_offset=self.offset, leader_epoch=0)
        with self.log.open("r+b") as log, self.index.open("ab") as index:
            log.seek(self.position)
            log.write(batch)
            index.write(self.entry(self.offset - 5, self.position))
        self.position += len(batch)
        self.offset += 1


@pytest.mark.parametrize(
    ("at", "data", "fault"),
    [
        (16, b"\7", "magic 7"),
        (8, bytes(4), "length 0 does not fit"),
        (8, b"\x7f\0\0\0", "length 2130706432 does not fit"),
    ],
)
def test_fault_of_a_growing_segment_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, data: bytes, fault: str
) -> None:
    path, second = two_batches(tmp_path)
    overwrite(path, second + at, data)
    monkeypatch.setattr(time, "sleep", Growing(path).pause)
    first, *faults = DUMPS[".log"](path, False, False)
    assert not isinstance(first, Fault)
    assert faults == [Fault(f"no batch at position {second}: {fault}")]


def test_batch_that_extends_over_growing_bytes_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its length is wrong, and fits into the preallocated file."""
    path, second = two_batches(tmp_path)
    growing = Growing(path)
    os.truncate(path, 1_000_000)
    overwrite(path, second + 8, struct.pack(">i", 900_000))
    monkeypatch.setattr(time, "sleep", growing.pause)
    _, _, *faults = DUMPS[".log"](path, False, False)
    assert faults == [Fault(f"batch at {second} does not match its CRC")]


def test_fault_of_a_growing_index_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new entry is a fault too, because the batches after the damaged one are unknown."""
    path, second = two_batches(tmp_path)
    index = path.with_suffix(".index")
    index.write_bytes(OFFSET_ENTRY.pack(2, 0) + OFFSET_ENTRY.pack(5, second))
    overwrite(path, second + 16, b"\7")
    monkeypatch.setattr(time, "sleep", Growing(path).pause)
    rows = DUMPS[".index"](index, False, False)
    faults = [row for row in rows if isinstance(row, Fault)]
    assert Fault(f"offset 10 is not the last of a batch at position {second}") in faults


def test_growing_index_that_always_has_another_fault_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = two_batches(tmp_path)
    index = path.with_suffix(".index")
    index.write_bytes(OFFSET_ENTRY.pack(2, 0) + b"\0\0\0")
    growing = Growing(path, lambda *_: bytes(OFFSET_ENTRY.size))
    monkeypatch.setattr(time, "sleep", growing.pause)
    rows = DUMPS[".index"](index, False, False)
    (fault,) = (row for row in rows if isinstance(row, Fault))
    assert "is not a multiple of an entry's 8" in fault.text


def test_index_without_its_segment_names_the_segment(tmp_path: Path, capsys: Capture) -> None:
    path, _ = two_batches(tmp_path)
    index = path.with_suffix(".index")
    index.touch()
    path.unlink()
    assert run(index) == 1
    assert f"cannot read {path}: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("removed", [(".log",), (".index",), (".log", ".index")])
def test_files_that_are_removed_between_two_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: tuple[str, ...]
) -> None:
    path, _ = two_batches(tmp_path)
    index = path.with_suffix(".index")
    index.write_bytes(OFFSET_ENTRY.pack(2, 9))

    def pause(_seconds: float) -> None:
        for suffix in removed:
            path.with_suffix(suffix).unlink(missing_ok=True)

    monkeypatch.setattr(time, "sleep", pause)
    rows = DUMPS[".index"](index, False, False)
    if index.suffix in removed:
        assert list(rows) == []
    else:
        with pytest.raises(FileNotFoundError, match=path.name):
            list(rows)


def test_index_that_is_removed_after_its_segment_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = two_batches(tmp_path)
    index = path.with_suffix(".index")
    index.touch()
    path.unlink()
    monkeypatch.setattr(time, "sleep", lambda _: index.unlink())
    assert list(DUMPS[".index"](index, False, False)) == []


def two_batches(directory: Path) -> tuple[Path, int]:
    """Return a segment without preallocated bytes, and the position of its second batch."""
    path = segment(directory)
    _, second = batch_headers(path)
    os.truncate(path, second.position + second.size)
    return path, second.position


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def shorter(path: Path) -> Path:
    """Return a segment that replaces this one after a compaction."""
    other = path.with_suffix(".log.swap")
    other.write_bytes(build_batch([(b"k", b"w")], base_offset=5, leader_epoch=0))
    return other


@pytest.mark.parametrize(
    ("kind", "entry", "fault"),
    [
        (".index", struct.pack(">ii", 5, 9), "offset 10 is not the last of a batch at position 9"),
        (".index", struct.pack(">ii", 1, 0), "offset 6 is not the last of a batch at position 0"),
        (".index", struct.pack(">ii", 2, 0) + b"\1\1\1", "11 is not a multiple of an entry's 8"),
        (".timeindex", struct.pack(">qi", 9, 2), "timestamp 9 ends at offset 7"),
        (".timeindex", struct.pack(">qi", -1, 1), "timestamp -1 ends at offset 6"),
        (".timeindex", b"\1\1", "2 is not a multiple of an entry's 12"),
        (".txnindex", b"\1\1\1", "3 is not a multiple of an entry's 34"),
    ],
)
def test_an_index_must_point_at_the_ends_of_batches(
    tmp_path: Path, capsys: Capture, kind: str, entry: bytes, fault: str
) -> None:
    index = segment(tmp_path).with_suffix(kind)
    index.write_bytes(entry)
    assert run("--verify", index) == 1
    assert fault in capsys.readouterr().out


def test_dump_of_an_index_that_is_removed_during_it_is_complete(tmp_path: Path) -> None:
    """Its length was taken by its name, after its entries were read."""
    index = segment(tmp_path).with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 2, 0) + b"\1\1\1")
    rows = DUMPS[".index"](index, False, False)
    assert next(rows) == {"offset": 7, "position": 0}
    index.unlink()
    assert list(rows) == [Fault("a length of 11 is not a multiple of an entry's 8")]
