"""Formats the data directory of a cluster node before its first start, like ``kafka-storage
format``.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from pykafka_core._core import Repair
from pykafka_core.broker.storage.data_directory import (
    META_PROPERTIES,
    METADATA_DIRECTORY,
    DataDirectory,
)
from pykafka_core.broker.storage.files import make_directory, storage_errors
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.broker.storage.voters import VoterNode, quorum_records
from pykafka_core.errors import StorageError
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import id_text, random_id

CONTROLLER_LISTENER = "CONTROLLER"


def format_directory(
    path: Path,
    identity: Identity,
    voters: Sequence[VoterNode] = (),
    listener: str = CONTROLLER_LISTENER,
) -> None:
    """Write the owner of the directory and, for a controller, the first voters of the quorum.

    A format that was interrupted can be repeated, also with other arguments.

    Args:
        path: Created if it does not exist.
        identity: The cluster id, which is equal on all nodes, and this node's own node id and
            directory id.
        voters: All voters, the same list on every controller; empty for a node that is only a
            broker.
        listener: Name of the controller listener.

    Raises:
        StorageLockedError: A broker runs in the directory, or another process formats it.
        StorageError: It is already formatted, is inside another data directory, or cannot be
            written.
    """
    with _locked(path):
        if DataDirectory(path).stored_identity() is not None:
            raise StorageError(f"{path} is formatted already; remove it to format it again")
        _write(path, identity, voters, listener)


def _write(path: Path, identity: Identity, voters: Sequence[VoterNode], listener: str) -> None:
    """Format a directory; the caller holds its lock."""
    directory = DataDirectory(path)
    if directory.first_data() is None:
        directory.remove_format()
    if voters:
        metadata = path / METADATA_DIRECTORY
        with storage_errors("make", metadata):
            make_directory(metadata)
        now_ms = time.time_ns() // 1_000_000
        directory.write_snapshot(
            0, 0, encode_snapshot((), 0, now_ms, quorum_records(voters, listener))
        )
    # Written last, so that a formatted directory is complete.
    directory.create(identity)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Create a directory and take its lock, as a broker does; without waiting for the lock."""
    outer = Path(os.path.realpath(path)).parent
    with storage_errors("make", path):
        # `Repair` would treat it as a partition, and lock the outer directory instead.
        if (outer / META_PROPERTIES).exists():
            raise StorageError(
                f"{path} is inside the data directory {outer}; choose one outside of it"
            )
        path.mkdir(parents=True, exist_ok=True)
    with closing(Repair(path)):
        yield


def format_cluster(folder: Path, controllers: Mapping[int, tuple[str, int]]) -> None:
    """Format a directory for each node of a new cluster, all of them voters, below a folder by
    their node ids. A format that was interrupted can be repeated.

    Args:
        folder: Contains the directories.
        controllers: Host and port of each node's controller listener.

    Raises:
        StorageError: See `is_formatted` and `format_directory`.
    """
    _check_new(folder, controllers)
    with ExitStack() as locks:
        for node in controllers:
            locks.enter_context(_locked(folder / str(node)))
        # Checked before as well, because a rejected format creates no directories.
        _check_new(folder, controllers)
        _format_nodes(folder, controllers)


def _check_new(folder: Path, nodes: Iterable[int]) -> None:
    if is_formatted(folder, list(nodes)):
        raise StorageError(
            f"{folder} is formatted already; another process may be starting its nodes"
        )


def _format_nodes(folder: Path, controllers: Mapping[int, tuple[str, int]]) -> None:
    """Format nodes with new ids; the caller holds their locks."""
    cluster_id = id_text(random_id(os.urandom))
    identities = [Identity(cluster_id, node, random_id(os.urandom)) for node in controllers]
    voters = [
        VoterNode(
            ReplicaKey(identity.node_id, identity.directory_id), *controllers[identity.node_id]
        )
        for identity in identities
    ]
    # No node keeps the ids of a format that was interrupted.
    for node in controllers:
        DataDirectory(folder / str(node)).remove_format()
    for identity in identities:
        _write(folder / str(identity.node_id), identity, voters, CONTROLLER_LISTENER)


def is_formatted(folder: Path, nodes: Sequence[int]) -> bool:
    """Return whether `format_cluster` has formatted all nodes; False if it was not called, or was
    interrupted: then no node has started, and it can be repeated.

    Args:
        folder: Contains the directories.
        nodes: The node ids, in ascending order.

    Raises:
        IdentityError: A node has data and no readable meta.properties.
        StorageError: The folder belongs to another number of nodes, or cannot be read.
    """
    directories = [DataDirectory(folder / str(node)) for node in nodes]
    missing = [one for one in directories if one.stored_identity() is None]
    for one in missing:
        one.check_no_data()
    is_of_more = (folder / str(nodes[-1] + 1)).exists()
    if is_of_more or (missing and any(one.has_started() for one in directories)):
        raise StorageError(f"{folder} has another number of nodes than {len(nodes)}")
    return not missing
