"""Metadata snapshots on a real disk: they are written and loaded, and the log below them is
deleted.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage import snapshots
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.errors import MetadataError, StorageError
from tests.support.java import java
from tests.support.patience import PATIENCE_S, eventually

EACH_COMMIT = {
    "metadata.log.max.record.bytes.between.snapshots": "1",
    "metadata.max.retention.bytes": "0",
    "internal.metadata.log.segment.bytes": "1000",
}
METADATA = "__cluster_metadata-0"


def make_topics(broker: Broker, first: int, count: int) -> None:
    for number in range(first, first + count):
        broker.create_topic(f"topic-{number}", 2, config={"retention.ms": "7"})
        settle(broker)


def names(count: int) -> dict[str, int]:
    return {f"topic-{number}": 2 for number in range(count)}


def checkpoints(data: Path) -> list[Path]:
    return sorted((data / METADATA).glob("*-*.checkpoint"))


def segments_of(data: Path) -> list[str]:
    return [path.name for path in (data / METADATA).glob("*.log")]


def settle(broker: Broker) -> None:
    """Send another request: the snapshot of a commit is started after its response."""
    assert broker.topics()
    with pytest.raises(Exception, match="already exists"):
        broker.create_topic(next(iter(broker.topics())))
    writing = snapshots_of(broker)._writing
    if writing is not None:
        writing.join()


def snapshots_of(broker: Broker) -> Snapshots:
    found = broker._started.snapshots
    assert found is not None, "it is on disk"
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_start_needs_only_the_newest_snapshot_and_the_log_after_it(data: Path) -> None:
    with Broker(data, config=EACH_COMMIT) as broker:
        make_topics(broker, 0, 30)
        broker._core.enforce_retention(10**9)
        eventually(lambda: f"{0:020}.log" not in segments_of(data))
    assert len(checkpoints(data)) == 1
    with Broker(data) as broker:
        assert broker.topics() == names(30)
        make_topics(broker, 30, 1)
    with Broker(data) as broker:
        assert broker.topics() == names(31)
        assert broker._image().configs.of(2, "topic-3") == {"retention.ms": "7"}
    checkpoints(data)[0].unlink()
    with pytest.raises(MetadataError, match=r"restore the newest \.checkpoint"):
        Broker(data)


def test_no_snapshot_is_written_before_it_is_due(data: Path) -> None:
    with Broker(data) as broker:
        make_topics(broker, 0, 3)
    assert checkpoints(data) == []
    bytes_max = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
    with Broker(data, config=bytes_max) as broker:
        make_topics(broker, 3, 20)
    assert 1 <= len(checkpoints(data)) <= 3, "bytes of the log found at the start count too"


def test_snapshots_within_the_retention_size_are_kept(data: Path) -> None:
    kept = EACH_COMMIT | {"metadata.max.retention.bytes": "100000000"}
    with Broker(data, config=kept) as broker:
        make_topics(broker, 0, 5)
    assert len(checkpoints(data)) >= 5


def test_snapshots_are_deleted_by_age_where_size_is_unlimited(data: Path) -> None:
    by_age = EACH_COMMIT | {
        "metadata.max.retention.bytes": "-1",
        "metadata.max.retention.ms": "1000",
    }
    with Broker(data, config=by_age, clock=10_000_000) as broker:
        make_topics(broker, 0, 3)
    assert len(checkpoints(data)) >= 3
    with Broker(data, config=by_age, clock=10_002_000) as broker:
        make_topics(broker, 3, 1)
    assert [found.time_ms for found in DataDirectory(data).snapshots()] == [10_002_000]


def after(before: Callable[[str], None], step: str, call: Callable[..., None]) -> Any:
    """Return ``call`` with ``before(step)`` called first."""

    def both(*arguments: Any, **options: Any) -> None:
        before(step)
        call(*arguments, **options)

    both.__wrapped__ = call  # type: ignore[attr-defined]
    return both


class Inline:
    """A thread that runs on the thread that starts it, so that no file changes while a directory is
    copied.
    """

    def __init__(self, *, target: Callable[..., None], args: tuple[Any, ...], **_: Any) -> None:
        self._work = partial(target, *args)

    def start(self) -> None:
        self._work()

    def is_alive(self) -> bool:
        return False

    def join(self) -> None:
        pass


def test_kill_between_any_two_steps_loses_no_acknowledged_topic(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is copied before each file operation, as a kill at that point leaves it."""
    acknowledged = 0
    killed: list[tuple[Path, int]] = []

    def copying(step: str) -> None:
        copy = tmp_path / f"{len(killed)}-{step}"
        # A checkpoint that the core is writing may be renamed while it is copied.
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns(".lock", "*-checkpoint.tmp"))
        killed.append((copy, acknowledged))

    monkeypatch.setattr(snapshots, "native", SimpleNamespace(Thread=Inline))
    with Broker(data, config=EACH_COMMIT | {"log.retention.check.interval.ms": "1"}) as broker:
        make_topics(broker, 0, 1)
        for owner, step in ((os, "fsync"), (os, "replace"), (Path, "unlink")):
            monkeypatch.setattr(owner, step, after(copying, step, getattr(owner, step)))
        for acknowledged in range(1, 4):
            make_topics(broker, acknowledged, 1)
        for owner, step in ((os, "fsync"), (os, "replace"), (Path, "unlink")):
            monkeypatch.setattr(owner, step, getattr(owner, step).__wrapped__)
    steps = {copy.name.partition("-")[2] for copy, _ in killed}
    assert steps == {"fsync", "replace", "unlink"}
    for copy, promised in killed:
        with Broker(copy) as broker:
            assert names(promised).items() <= broker.topics().items(), copy.name
        assert not list((copy / METADATA).glob("*.part")), "what was half written is still there"


@pytest.mark.jvm
def test_tool_of_kafka_reads_a_snapshot(data: Path) -> None:
    with Broker(data, config=EACH_COMMIT) as broker:
        make_topics(broker, 0, 2)
        offset = broker._image().offset
    newest = checkpoints(data)[-1]
    assert int(newest.name[:20]) == offset + 1
    printed = java(
        "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(newest)
    )
    assert "SnapshotHeader" in printed
    assert "SnapshotFooter" in printed
    assert "isvalid: false" not in printed
    for name in ("topic-0", "topic-1"):
        assert f'"name":"{name}"' in printed


@pytest.fixture
def full(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise StorageError("no space")

    monkeypatch.setattr(DataDirectory, "write_snapshot", refuse)
    yield
    monkeypatch.undo()


@pytest.mark.usefixtures("full")
def test_failed_snapshot_is_only_logged(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(data, config=EACH_COMMIT) as broker:
        make_topics(broker, 0, 3)
    lines = [line for line in caplog.messages if "snapshot could not be written" in line]
    assert len(lines) == 1, "the next try comes later"
    with Broker(data) as broker:
        assert broker.topics() == names(3)


def test_requests_are_served_while_a_snapshot_is_written(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    write = DataDirectory.write_snapshot

    def write_later(*arguments: Any) -> None:
        assert held.wait(PATIENCE_S)
        write(*arguments)

    monkeypatch.setattr(DataDirectory, "write_snapshot", write_later)
    with Broker(data, config=EACH_COMMIT) as broker:
        for number in range(3):
            broker.create_topic(f"topic-{number}", 2)
        assert broker.topics() == names(3)
        assert checkpoints(data) == []
        held.set()
    assert len(checkpoints(data)) >= 1, "closing waits for it"


def test_log_that_ends_below_its_newest_snapshot_is_rejected(data: Path) -> None:
    kept = EACH_COMMIT | {"metadata.max.retention.bytes": "100000000"}
    with Broker(data, config=kept) as broker:
        make_topics(broker, 0, 3)
    for path in [*(data / METADATA).iterdir()]:
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()
    with pytest.raises(MetadataError, match=r"ends at offset 0, below its newest snapshot"):
        Broker(data)
