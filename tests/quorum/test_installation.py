"""A node replaces its log by a snapshot of the leader, also if it is killed at any step of it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pykafka_core.broker.runtime.quorum.snapshot_install import Installation
from pykafka_core.broker.storage.data_directory import METADATA_DIRECTORY, DataDirectory
from pykafka_core.broker.storage.snapshot_parts import SnapshotParts
from pykafka_core.errors import MetadataError, StorageError
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.protocol.messages import FeatureLevelRecord, Message, NoOpRecord, TopicRecord
from pykafka_core.quorum.values import OffsetAndEpoch, QuorumConfig
from tests.quorum.test_sockets import Cluster
from tests.support.snapshots import with_a_malformed_record

ID = OffsetAndEpoch(9, 3)
FEATURE = FeatureLevelRecord(name="metadata.version", feature_level=29)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def topic(number: int) -> Message:
    return TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big"))


def leave_behind(cluster: Cluster, count: int = 10) -> tuple[int, OffsetAndEpoch]:
    """Stop a follower while its leader deletes the start of the log; return it and the snapshot."""
    cluster.start(1, 2, 3)
    leader = cluster.leader()
    cluster.up[leader].propose([FEATURE])
    cluster.agree(2)
    away = next(node for node in cluster.up if node != leader)
    cluster.stop(away)
    one = cluster.up[leader]
    end = one.replica.log_end_offset
    for number in range(count):
        one.propose([topic(number)])
    one.wait_until_committed(end + count)
    one.wait_for(lambda: len(one.published) >= count, "all is told")
    return away, one.take_snapshot()


def test_follower_that_was_down_continues_after_a_snapshot(cluster: Cluster) -> None:
    away, snapshot_id = leave_behind(cluster)
    cluster.start(away)
    back = cluster.up[away]
    back.wait_for(lambda: back.replaced, "a snapshot is installed")
    (replaced,) = back.replaced
    assert set(replaced.replay.image().topics.by_name) == {f"topic-{n}" for n in range(10)}
    assert back.log_start == snapshot_id.offset
    leader = cluster.up[cluster.leader()]
    leader.propose([NoOpRecord()])
    for one in (leader, back):
        one.wait_until_committed(snapshot_id.offset + 1)
    found = [(one.end_offset, one.leader_epoch) for one in back.directory.snapshots()]
    assert found == [snapshot_id]
    assert back.committed == leader.committed


def test_snapshot_of_several_parts_is_installed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, _ = leave_behind(cluster, 60)
    stored: list[int] = []
    store = SnapshotParts.store

    def counted(self: SnapshotParts, one: OffsetAndEpoch, position: int, part: bytes) -> None:
        stored.append(len(part))
        store(self, one, position, part)

    monkeypatch.setattr(SnapshotParts, "store", counted)
    cluster.start(away, config=QuorumConfig(snapshot_bytes_max=100))
    back = cluster.up[away]
    back.wait_for(lambda: back.replaced, "a snapshot is installed")
    assert len(stored) > 20
    assert max(stored) == 100
    assert len(back.replaced[0].replay.image().topics.by_name) == 60


def test_damaged_snapshot_is_fetched_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away, _ = leave_behind(cluster)
    store = SnapshotParts.store
    broken: list[int] = []

    def once(self: SnapshotParts, one: OffsetAndEpoch, position: int, part: bytes) -> None:
        if not broken:
            broken.append(position)
            part = part[:-1] + bytes((part[-1] ^ 1,))
        store(self, one, position, part)

    monkeypatch.setattr(SnapshotParts, "store", once)
    cluster.start(away)
    back = cluster.up[away]
    back.wait_for(lambda: back.replaced, "a snapshot is installed")
    assert broken
    assert [line for line in caplog.messages if "was not installed" in line]


def test_snapshot_is_installed_after_the_disk_was_full(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away, _ = leave_behind(cluster)
    store = SnapshotParts.store
    refused: list[int] = []

    def full_once(self: SnapshotParts, one: OffsetAndEpoch, position: int, part: bytes) -> None:
        if not refused:
            refused.append(position)
            raise StorageError("no space")
        store(self, one, position, part)

    monkeypatch.setattr(SnapshotParts, "store", full_once)
    cluster.start(away)
    back = cluster.up[away]
    back.wait_for(lambda: back.replaced, "a snapshot is installed")
    assert [line for line in caplog.messages if "no space" in line]


def test_node_killed_between_any_two_steps_recovers(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is copied before each step; a copy is the state after a kill at that step."""
    away, snapshot_id = leave_behind(cluster)
    data = tmp_path / str(away)
    killed: dict[str, Path] = {}

    def copying(step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def both(*arguments: Any, **options: Any) -> Any:
            copy = tmp_path / "killed" / f"{len(killed)}-{step}"
            shutil.copytree(data, copy, ignore=shutil.ignore_patterns(".lock", "*-checkpoint.tmp"))
            killed[copy.name] = copy
            return call(*arguments, **options)

        return both

    with monkeypatch.context() as patch:
        for owner, step in (
            (os, "fsync"),
            (os, "replace"),
            (SnapshotParts, "store"),
            (SnapshotParts, "load"),
            (SnapshotParts, "remove_before"),
            (Installation, "_on_restarted"),
        ):
            patch.setattr(owner, step, copying(step, getattr(owner, step)))
        cluster.start(away)
        back = cluster.up[away]
        back.wait_for(lambda: back.replaced, "a snapshot is installed")
        cluster.stop(away)
    steps = {name.partition("-")[2] for name in killed}
    assert steps >= {"fsync", "replace", "store", "load", "remove_before", "_on_restarted"}
    leader = cluster.up[cluster.leader()]
    leader.propose([NoOpRecord()])
    for name, copy in killed.items():
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        cluster.start(away)
        back = cluster.up[away]
        back.wait_until_committed(snapshot_id.offset + 1)
        assert back.log_start == snapshot_id.offset, name
        left = [path.name for path in (data / METADATA_DIRECTORY).glob("*.part")]
        assert left == [], name
        assert back.committed == leader.committed, name
        cluster.stop(away)


# Files.


@pytest.fixture
def parts(tmp_path: Path) -> SnapshotParts:
    (tmp_path / METADATA_DIRECTORY).mkdir()
    return SnapshotParts(DataDirectory(tmp_path))


WHOLE = encode_snapshot([FEATURE, topic(1)], 3, 1000)


def test_stored_parts_equal_the_snapshot_that_was_read(
    parts: SnapshotParts, tmp_path: Path
) -> None:
    DataDirectory(tmp_path).write_snapshot(*ID, WHOLE)
    assert parts.read(OffsetAndEpoch(9, 4), 0, 10) is None
    first = parts.read(ID, 0, 100)
    assert first is not None
    assert (first.size, first.data) == (len(WHOLE), WHOLE[:100])
    behind = parts.read(ID, len(WHOLE), 10)
    assert behind is not None
    assert behind.data == b""
    parts.store(ID, 0, b"from an earlier try")
    parts.store(ID, 0, WHOLE[:100])
    parts.store(ID, 100, WHOLE[100:])
    loaded = parts.load(ID)
    assert list(loaded.replay.image().topics.by_name) == ["topic-1"]
    assert loaded.replay.image().offset == 8


def test_part_must_follow_the_previous_one(parts: SnapshotParts) -> None:
    parts.store(ID, 0, b"abc")
    with pytest.raises(StorageError, match="cannot write"):
        parts.store(ID, 2, b"d")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        WHOLE[:-1],
        WHOLE + b"\0",
        WHOLE[:-1] + bytes((WHOLE[-1] ^ 1,)),
        WHOLE[:70] + bytes((WHOLE[70] ^ 1,)) + WHOLE[71:],
        encode_snapshot([], 3, 1000)[:85],
        with_a_malformed_record(WHOLE),
    ],
)
def test_invalid_snapshot_gets_no_name(
    parts: SnapshotParts, tmp_path: Path, content: bytes
) -> None:
    parts.store(ID, 0, content)
    with pytest.raises(MetadataError):
        parts.load(ID)
    assert DataDirectory(tmp_path).snapshots() == []


def test_symbolic_link_in_place_of_a_part_is_not_followed(
    parts: SnapshotParts, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs")
    fetched = DataDirectory(tmp_path).fetched_path(ID)
    fetched.symlink_to(outside)
    with pytest.raises(StorageError):
        parts.store(ID, 6, b"ours")
    parts.store(ID, 0, b"ours")
    assert (outside.read_bytes(), fetched.read_bytes()) == (b"theirs", b"ours")
