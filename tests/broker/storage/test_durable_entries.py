"""The control plane's files in a new data directory survive a power cut from the moment they are
needed.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY, DataDirectory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.quorum.values import ElectionState

IDENTITY = Identity("2EmZYW-FRB2ZlZqcy_R5Fw", 1, bytes(range(16)))


class Entries:
    """Tracks the calls that create directory entries, and those that make them durable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: set[Path] = set()
        self.lost: set[Path] = set()
        """Entries that would be lost by a power cut now."""
        self._synced: set[int] = set()
        for name in ("mkdir", "replace", "fsync"):
            monkeypatch.setattr(os, name, self._following(getattr(os, name), getattr(self, name)))

    def _following(self, call: Any, note: Any) -> Any:
        def both(*arguments: Any, **options: Any) -> None:
            call(*arguments, **options)
            note(*arguments)

        return both

    def mkdir(self, path: Path, *_: object) -> None:
        self._make(Path(path))

    def replace(self, source: Path, path: Path) -> None:
        assert os.stat(path).st_ino in self._synced, f"{source} got its name before its content"
        self._make(Path(path))

    def _make(self, path: Path) -> None:
        self.made.add(path)
        self.lost.add(path)

    def fsync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        self._synced.add(inode)
        self.lost = {path for path in self.lost if os.stat(path.parent).st_ino != inode}


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entries:
    return Entries(monkeypatch)


def test_each_entry_is_synced_before_the_call_returns(tmp_path: Path, entries: Entries) -> None:
    directory = DataDirectory(tmp_path)
    metadata = tmp_path / METADATA_DIRECTORY
    directory.create(IDENTITY)
    assert (entries.made, entries.lost) == ({tmp_path / "meta.properties"}, set())
    directory.write_election(ElectionState(1, 1))
    assert entries.made >= {metadata, metadata / "quorum-state"}
    assert entries.lost == set()
    directory.write_snapshot(0, 1, b"content")
    assert entries.lost == set()


def test_a_directory_that_a_crash_left_unsynced_is_synced(tmp_path: Path, entries: Entries) -> None:
    os.mkdir(tmp_path / METADATA_DIRECTORY)
    assert entries.lost == {tmp_path / METADATA_DIRECTORY}
    DataDirectory(tmp_path).write_election(ElectionState(1, 1))
    assert entries.lost == set()
