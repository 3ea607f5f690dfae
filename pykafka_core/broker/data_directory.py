"""The files of a data directory that are the control plane's: identity and quorum state.

Logs, checkpoints and locks are the core's. Formats: Kafka 4.2, ``MetaProperties.java``,
``QuorumStateData.json``; the directory may have been made by Apache Kafka.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pykafka_core.config import parse_properties
from pykafka_core.errors import StorageError
from pykafka_core.types import id_bytes, id_text

DEFAULT_NODE_ID = 1
METADATA_DIRECTORY = "__cluster_metadata-0"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PART = ".part"
"""Behind the name of a snapshot that is being written, as Kafka's."""


_MAX_TIMESTAMP_AT = 35
"""Of a record batch: the snapshot's first holds the time of the last record it stands for."""


class SnapshotFile(NamedTuple):
    """A metadata snapshot on disk. ``end_offset`` is exclusive; ``time_ms`` is of its last record."""

    end_offset: int
    leader_epoch: int
    size: int
    time_ms: int
    path: Path


class Identity(NamedTuple):
    """Who this broker is; fixed when its directory is made."""

    cluster_id: str
    node_id: int
    directory_id: bytes


class DataDirectory:
    """The control plane's view of one data directory; only looks until `create` or `write_…`.

    Args:
        path: The directory; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def identity(self) -> Identity | None:
        """Who the directory belongs to, None if it is new.

        Raises:
            StorageError: meta.properties cannot be understood.
        """
        file = self.path / "meta.properties"
        try:
            found = parse_properties(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"cannot read {file}: {error}") from error
        try:
            return Identity(
                cluster_id=found["cluster.id"],
                node_id=int(found["node.id" if "node.id" in found else "broker.id"]),
                directory_id=id_bytes(found["directory.id"]),
            )
        except (KeyError, ValueError) as error:
            raise StorageError(f"{file} is not a meta.properties of Kafka: {error}") from error

    def create(self, identity: Identity) -> None:
        """Write who the directory belongs to; the caller holds its lock."""
        lines = (
            "#",
            f"cluster.id={identity.cluster_id}",
            f"directory.id={id_text(identity.directory_id)}",
            f"node.id={identity.node_id}",
            "version=1",
        )
        _write_atomically(self.path / "meta.properties", "\n".join(lines) + "\n")

    def was_closed_cleanly(self) -> bool:
        """Whether the last broker stopped in good order; ask before the core opens it."""
        return (self.path / CLEAN_SHUTDOWN).exists()

    def quorum_epoch(self) -> int:
        """The last epoch this node knew of, 0 for none.

        Raises:
            StorageError: quorum-state cannot be understood.
        """
        file = self.path / METADATA_DIRECTORY / "quorum-state"
        try:
            return int(json.loads(file.read_text(encoding="utf-8"))["leaderEpoch"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{file} is not a quorum-state of Kafka: {error}") from error

    def write_quorum_state(self, node_id: int, epoch: int) -> None:
        """Remember that ``node_id`` leads in ``epoch``: before anything is written in it."""
        state = {
            "clusterId": "",
            "leaderId": node_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": node_id}],
            "data_version": 0,
        }
        file = self.path / METADATA_DIRECTORY / "quorum-state"
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(file, json.dumps(state, separators=(",", ":")))

    def latest_snapshot(self) -> tuple[int, bytes] | None:
        """End offset (exclusive) and content of the newest metadata snapshot."""
        directory = self.path / METADATA_DIRECTORY
        names = [name for name in _names(directory) if _is_snapshot(name)]
        if not names:
            return None
        newest = max(names)
        return int(newest[:20]), (directory / newest).read_bytes()

    def snapshots(self) -> list[SnapshotFile]:
        """The metadata snapshots, oldest first."""
        directory = self.path / METADATA_DIRECTORY
        names = sorted(name for name in _names(directory) if _is_snapshot(name))
        return [_snapshot_file(directory / name) for name in names]

    def write_snapshot(self, end_offset: int, leader_epoch: int, content: bytes) -> None:
        """Add a metadata snapshot; there is a file of its name only once all of it is durable."""
        name = f"{end_offset:020}-{leader_epoch:010}.checkpoint"
        _write_atomically(self.path / METADATA_DIRECTORY / name, content, PART)

    def remove_snapshot(self, snapshot: SnapshotFile) -> None:
        """Remove one that another stands in for."""
        snapshot.path.unlink(missing_ok=True)

    def remove_unfinished_snapshots(self) -> None:
        """Remove what a crash left of a snapshot that was being written; the caller holds the lock."""
        for name in _names(self.path / METADATA_DIRECTORY):
            if name.endswith(PART) and _is_snapshot(name.removesuffix(PART)):
                (self.path / METADATA_DIRECTORY / name).unlink()

    def metadata_log_size(self) -> int:
        """Bytes of the metadata log's segments; those of a file that just went are not counted."""
        directory = self.path / METADATA_DIRECTORY
        return sum(_size(directory / name) for name in _names(directory) if name.endswith(".log"))


def new_identity(node_id: int | None, new_id: Callable[[], bytes]) -> Identity:
    """An identity for a new directory, or for a broker in memory.

    Args:
        node_id: As given, or None for `DEFAULT_NODE_ID`.
        new_id: Gives a `types.random_id` at each call.
    """
    return Identity(
        cluster_id=id_text(new_id()),
        node_id=DEFAULT_NODE_ID if node_id is None else node_id,
        directory_id=new_id(),
    )


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _is_snapshot(name: str) -> bool:
    """``<20 digits>-<10 digits>.checkpoint``."""
    stem, dot, suffix = name.partition(".")
    offset, dash, epoch = stem.partition("-")
    return (
        (dot, suffix, dash) == (".", "checkpoint", "-")
        and (len(offset), len(epoch)) == (20, 10)
        and (offset + epoch).isdigit()
    )


def _snapshot_file(path: Path) -> SnapshotFile:
    with path.open("rb") as file:
        head = file.read(_MAX_TIMESTAMP_AT + 8)
    return SnapshotFile(
        end_offset=int(path.name[:20]),
        leader_epoch=int(path.name[21:31]),
        size=_size(path),
        time_ms=int.from_bytes(head[_MAX_TIMESTAMP_AT:], "big", signed=True),
        path=path,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _write_atomically(path: Path, content: str | bytes, suffix: str = ".tmp") -> None:
    """After this returns, a power cut leaves the new content; before, the old or the new."""
    temporary = path.with_name(path.name + suffix)
    with open(temporary, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
