"""A data directory for a node of a cluster of several, before its first start; what ``kafka-storage format`` does."""

import time
from collections.abc import Sequence
from pathlib import Path

from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.files import make_directory, storage_errors
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.broker.storage.voters import VoterNode, quorum_records
from pykafka_core.errors import StorageError
from pykafka_core.metadata.records.snapshot import encode_snapshot

CONTROLLER_LISTENER = "CONTROLLER"


def format_directory(
    path: Path,
    identity: Identity,
    voters: Sequence[VoterNode] = (),
    listener: str = CONTROLLER_LISTENER,
) -> None:
    """Write who the directory belongs to and, for a controller, the first voters of the quorum.

    Args:
        path: Made if it is not there.
        identity: Cluster id, the same on every node; node id and directory id, its own.
        voters: All of them, in the same way on every controller; none for a node that is a broker only.
        listener: Name of the listener at which controllers reach each other.

    Raises:
        StorageError: It is formatted already, or cannot be written.
    """
    directory = DataDirectory(path)
    if directory.identity() is not None:
        raise StorageError(f"{path} is formatted already; remove it to format it anew")
    with storage_errors("make", path):
        path.mkdir(parents=True, exist_ok=True)
    if voters:
        metadata = path / "__cluster_metadata-0"
        with storage_errors("make", metadata):
            make_directory(metadata)
        now_ms = time.time_ns() // 1_000_000
        directory.write_snapshot(
            0, 0, encode_snapshot((), 0, now_ms, quorum_records(voters, listener))
        )
    # Last: a directory that is formatted has all that belongs to it.
    directory.create(identity)
