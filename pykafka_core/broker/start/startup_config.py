"""The configuration of a broker, from its settings and its data directory, and the result of a
start.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pykafka_core.broker.start.control_plane import ControlPlane
from pykafka_core.broker.start.joining import Latch
from pykafka_core.broker.start.loading import check_snapshot, naming
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import Identity, new_identity
from pykafka_core.broker.storage.reserve import Reserve
from pykafka_core.broker.storage.snapshots import Snapshots
from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import ClusterError, StorageError
from pykafka_core.handlers.context import Node
from pykafka_core.metadata.image.image import Endpoint

if TYPE_CHECKING:
    from pykafka_core.broker.storage.voters import VoterNode

UNKNOWN_EPOCH = -1


class StartupConfig(NamedTuple):
    """The configuration of a broker."""

    settings: BrokerConfigs
    identity: Identity
    directory: DataDirectory | None
    clean_epoch: int | None
    """Broker epoch of the last run if it stopped cleanly, -1 if it was not recorded; None after an
    unclean stop.
    """
    new_id: Callable[[], bytes]
    voters: "tuple[VoterNode, ...]" = ()
    """Voters of the metadata quorum in the newest snapshot; empty if they are not in the log."""

    @property
    def node(self) -> Node:
        """This node, for handlers."""
        return Node(
            node_id=self.identity.node_id,
            cluster_id=self.identity.cluster_id,
            directory_id=self.identity.directory_id,
            log_dir=os.path.abspath(self.directory.path) if self.directory else "memory",
            new_id=self.new_id,
        )

    @property
    def is_member(self) -> bool:
        """Whether other nodes take part in the metadata quorum, or could, by a controller
        listener.
        """
        own = self.identity.node_id, self.identity.directory_id
        start = self.settings.start
        is_alone = all(voter.key == own for voter in self.voters)
        if not start.is_broker or len(start.voters) > 1:
            return True
        can_grow = self.directory is not None and bool(start.controller_listeners)
        return not (start.is_controller and is_alone) or can_grow


class Started(NamedTuple):
    """A started broker, whose control thread may run."""

    control: ControlPlane
    bound: tuple[Endpoint, ...]
    """The bound listeners."""
    endpoints: tuple[Endpoint, ...]
    """The advertised addresses of the same listeners."""
    snapshots: Snapshots | None
    """None in memory, where metadata is never loaded again."""
    reserve: Reserve | None
    """None for a broker in memory."""
    joined: Latch | None = None
    """Set once a cluster node may serve; None for a single broker."""
    controllers: tuple[Endpoint, ...] = ()
    """Addresses of this node as a controller of a cluster."""


def plan(settings: BrokerConfigs, path: Path | None, new_id: Callable[[], bytes]) -> StartupConfig:
    """Read the data directory, without changing anything.

    Args:
        settings: The given settings.
        path: The data directory, None for memory.
        new_id: Returns a new `types.random_id`.

    Raises:
        StorageError: The directory belongs to another node, or cannot be read.
        MetadataError: Its newest snapshot is damaged, and has no list of the controllers.
        ClusterError: The settings name other controllers, but the directory has none.
    """
    node_id = settings.start.node_id
    directory = DataDirectory(path) if path is not None else None
    found = directory.identity() if directory else None
    if found is not None and node_id not in (None, found.node_id):
        raise StorageError(f"{path} belongs to node {found.node_id}, not to node {node_id}")
    identity = found.completed(new_id) if found else new_identity(node_id, new_id)
    voters = _voters(directory, identity, settings.start.controller_names)
    # A single static voter counts too: its disk may be lost, or not mounted.
    names_others = len(settings.start.bootstrap_servers) > 1 or bool(settings.start.voters)
    is_unknown = settings.start.is_controller and names_others and not voters
    snapshot = directory.latest_snapshot() if directory is not None and is_unknown else None
    if snapshot is not None:
        check_snapshot(snapshot)
    if is_unknown and found is None:
        raise ClusterError(
            f"the settings name controllers, and {path or 'a broker in memory'} does not contain them: create "
            "the directory with `pykafka-core format` and --initial-controllers; for static voters, or a node that "
            "will be added, --no-initial-controllers"
        )
    planned = StartupConfig(
        settings=settings,
        identity=identity,
        directory=directory,
        clean_epoch=directory.clean_epoch() if directory else UNKNOWN_EPOCH,
        new_id=new_id,
        voters=voters,
    )
    return planned._replace(settings=_identified(planned))


def _identified(planned: StartupConfig) -> BrokerConfigs:
    directory = planned.directory
    return planned.settings.with_identity(
        planned.identity.node_id,
        None if directory is None else os.path.abspath(directory.path),
        is_alone=not planned.is_member,
    )


def _voters(
    directory: DataDirectory | None, identity: Identity, listeners: Sequence[str]
) -> "tuple[VoterNode, ...]":
    """Return the voters in the newest snapshot; the first snapshot may have been deleted, like any
    other.

    Raises:
        MetadataError: The snapshot is damaged where they should be.
    """
    snapshot = None if directory is None else directory.latest_snapshot_head()
    if directory is None or snapshot is None:
        return ()
    # Imported only here, because a single broker does not need it.
    from pykafka_core.broker.storage.voters import has_others, voters_of
    from pykafka_core.metadata.records.quorum_records import QuorumRecords

    with naming(snapshot.path):
        records = QuorumRecords().after(snapshot.bytes)
    try:
        if listeners:
            return voters_of(records, listeners)
        if not has_others(records, identity.node_id):
            return ()
    except ValueError as error:
        raise StorageError(f"{snapshot.path}: {error}") from error
    raise ClusterError(among_several(directory))


def among_several(directory: DataDirectory) -> str:
    """Return why a directory cannot be used by a single broker."""
    return (
        f"{directory.path} belongs to one of several controllers, and the settings do not name any: start it with "
        "the settings of its node, which include controller.listener.names"
    )
