"""``dump-log`` prints what Kafka's DumpLogSegments prints of the same files."""

from pathlib import Path

import pytest

from pykafka_core._core import build_batch
from pykafka_core.cli.dump_log import dump_log
from pykafka_core.cli.errors import CliError

Capture = pytest.CaptureFixture[str]


def segment(directory: Path) -> Path:
    path = directory / "00000000000000000005.log"
    batches = [build_batch([(b"k", b"v")] * 3, base_offset=o, leader_epoch=0) for o in (5, 8)]
    path.write_bytes(b"".join(batches) + bytes(4096))
    return path


def test_batches_are_printed_in_kafkas_words(tmp_path: Path, capsys: Capture) -> None:
    path = segment(tmp_path)
    dump_log([path], verify=False, as_json=False)
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
    with pytest.raises(CliError, match="1 faults found"):
        dump_log([path], verify=True, as_json=False)
    assert "batch at 0 does not match its CRC" in capsys.readouterr().out


def test_an_index_must_point_at_batches(tmp_path: Path, capsys: Capture) -> None:
    index = segment(tmp_path).with_suffix(".index")
    index.write_bytes(bytes([0, 0, 0, 3, 0, 0, 0, 9]))
    with pytest.raises(CliError):
        dump_log([index], verify=True, as_json=False)
    assert "offset 8 is not in a batch at position 9" in capsys.readouterr().out
