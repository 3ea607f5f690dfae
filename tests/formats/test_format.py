"""A format excludes other processes that format the directory, and the node that it is for."""

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core._core import Repair
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.format import format_cluster, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.errors import StorageError, StorageLockedError
from pykafka_core.types import id_text, random_id

ONE = Identity(id_text(random_id(os.urandom)), 1, random_id(os.urandom))


def _controllers(count: int) -> Mapping[int, tuple[str, int]]:
    return dict.fromkeys(range(count), ("127.0.0.1", 1))


def _content(folder: Path) -> dict[str, bytes]:
    files = (one for one in folder.rglob("*") if one.is_file() and one.name != ".lock")
    return {str(file): file.read_bytes() for file in files}


def test_directory_of_a_running_broker_is_not_formatted(tmp_path: Path) -> None:
    """The broker continued with the old ids, and could not restart."""
    with Broker(tmp_path, durability="os"):
        (tmp_path / "meta.properties").unlink()
        with pytest.raises(StorageLockedError, match=f"{tmp_path} is in use by this process"):
            format_directory(tmp_path, ONE)
        assert DataDirectory(tmp_path).stored_identity() is None


def test_start_during_which_its_directory_is_formatted_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ran with the ids that it had read before it had the lock."""
    clean_epoch = DataDirectory.clean_epoch

    def before_the_lock(self: DataDirectory) -> int | None:
        format_directory(tmp_path, ONE)
        return clean_epoch(self)

    with monkeypatch.context() as patch:
        patch.setattr(DataDirectory, "clean_epoch", before_the_lock)
        with pytest.raises(StorageError, match=f"{tmp_path} was formatted during the start"):
            Broker(tmp_path, durability="os")
    with Broker(tmp_path, durability="os") as broker:
        assert broker.cluster_id == ONE.cluster_id


def test_format_locks_a_directory_until_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[str] = []

    def during(name: str) -> None:
        original = getattr(DataDirectory, name)

        def look(self: DataDirectory, *arguments: Any) -> None:
            with pytest.raises(StorageLockedError):
                Repair(self.path)
            held.append(name)
            original(self, *arguments)

        monkeypatch.setattr(DataDirectory, name, look)

    during("remove_format")
    during("create")
    format_directory(tmp_path, ONE)
    assert held == ["remove_format", "create"]
    with Broker(tmp_path, durability="os") as broker:
        assert broker.cluster_id == ONE.cluster_id


def test_nodes_that_are_starting_are_not_formatted_again(tmp_path: Path) -> None:
    """A node has its lock before it writes anything."""
    format_cluster(tmp_path, _controllers(3))
    before = _content(tmp_path)
    with (
        closing(Repair(tmp_path / "1")),
        pytest.raises(StorageLockedError, match=f"{tmp_path / '1'} is in use"),
    ):
        format_cluster(tmp_path, _controllers(5))
    assert _content(tmp_path) == before


def test_only_one_process_formats_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one took the format for an interrupted one, and mixed the ids of two clusters."""
    held: list[str] = []
    write_snapshot = DataDirectory.write_snapshot

    def during_a_format(self: DataDirectory, *arguments: Any) -> None:
        with pytest.raises(StorageLockedError, match=f"{tmp_path / '0'} is in use"):
            format_cluster(tmp_path, _controllers(2))
        held.append(self.path.name)
        write_snapshot(self, *arguments)

    monkeypatch.setattr(DataDirectory, "write_snapshot", during_a_format)
    format_cluster(tmp_path, _controllers(2))
    assert held == ["0", "1"]


def test_formatted_cluster_is_not_formatted_again(tmp_path: Path) -> None:
    """The advice to remove it was wrong while another process started the nodes."""
    format_cluster(tmp_path, _controllers(2))
    before = _content(tmp_path)
    expected = "is formatted already; another process may be starting its nodes"
    with pytest.raises(StorageError, match=expected):
        format_cluster(tmp_path, _controllers(2))
    assert _content(tmp_path) == before


def test_format_without_a_lock_is_a_storage_error(tmp_path: Path) -> None:
    """The lock of another kind failed on NFS, with an error of the system."""
    (tmp_path / "0" / ".lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=f"cannot lock {tmp_path / '0'}: Is a directory"):
        format_cluster(tmp_path, _controllers(2))
    assert not _content(tmp_path)


def test_directory_in_a_data_directory_is_not_formatted(tmp_path: Path) -> None:
    """`repair` would treat it as a partition of the outer directory, and lock that one."""
    format_directory(tmp_path, ONE)
    with pytest.raises(StorageError, match=f"inside the data directory {tmp_path}"):
        format_directory(tmp_path / "orders", ONE)
    assert not (tmp_path / "orders").exists()
