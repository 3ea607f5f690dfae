"""What a broker is to be, by its settings and its data directory, and what a start makes of it."""

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


class Plan(NamedTuple):
    """What a broker is to be."""

    settings: BrokerConfigs
    identity: Identity
    directory: DataDirectory | None
    clean_epoch: int | None
    """Broker epoch of the last run, which stopped cleanly, -1 if it did not say; None if it did not stop cleanly."""
    new_id: Callable[[], bytes]
    voters: "tuple[VoterNode, ...]" = ()
    """Of the metadata quorum, as the newest snapshot has them; none where they are not in the log."""

    @property
    def node(self) -> Node:
        """What handlers know of this node."""
        return Node(
            node_id=self.identity.node_id,
            cluster_id=self.identity.cluster_id,
            directory_id=self.identity.directory_id,
            log_dir=os.path.abspath(self.directory.path) if self.directory else "memory",
            new_id=self.new_id,
        )

    @property
    def is_member(self) -> bool:
        """Whether other nodes have a say in the metadata, or can be given one: by a listener of controllers."""
        own = self.identity.node_id, self.identity.directory_id
        start = self.settings.start
        is_alone = all(voter.key == own for voter in self.voters)
        if not start.is_broker or len(start.voters) > 1:
            return True
        can_grow = self.directory is not None and bool(start.controller_listeners)
        return not (start.is_controller and is_alone) or can_grow


class Started(NamedTuple):
    """A broker that serves; its control thread may start."""

    control: ControlPlane
    bound: tuple[Endpoint, ...]
    """Where it listens."""
    endpoints: tuple[Endpoint, ...]
    """What clients are told of the same listeners."""
    snapshots: Snapshots | None
    """None in memory: nothing is read again there."""
    reserve: Reserve | None
    """None in memory."""
    joined: Latch | None = None
    """Set once a node of several may serve; None where nobody else has a say."""
    controllers: tuple[Endpoint, ...] = ()
    """Where others reach this node as a controller of several."""


def plan(settings: BrokerConfigs, path: Path | None, new_id: Callable[[], bytes]) -> Plan:
    """Look at the data directory, without changing anything.

    Args:
        settings: As given.
        path: The data directory, None for memory.
        new_id: Gives a `types.random_id` at each call.

    Raises:
        StorageError: The directory belongs to another node, or cannot be understood.
        MetadataError: Its newest snapshot is damaged, and does not say who the controllers are.
        ClusterError: The settings speak of other controllers, and the directory of none.
    """
    node_id = settings.start.node_id
    directory = DataDirectory(path) if path is not None else None
    found = directory.identity() if directory else None
    if found is not None and node_id not in (None, found.node_id):
        raise StorageError(f"{path} belongs to node {found.node_id}, not to node {node_id}")
    identity = found.completed(new_id) if found else new_identity(node_id, new_id)
    voters = _voters(directory, identity, settings.start.controller_names)
    # A single static voter, too: its disk may have been lost, or is not mounted.
    names_others = len(settings.start.bootstrap_servers) > 1 or bool(settings.start.voters)
    is_unknown = settings.start.is_controller and names_others and not voters
    snapshot = directory.latest_snapshot() if directory is not None and is_unknown else None
    if snapshot is not None:
        check_snapshot(snapshot)
    if is_unknown and found is None:
        raise ClusterError(
            f"the settings name controllers, and {path or 'a broker in memory'} does not know them: make the "
            "directory by `pykafka-core format` with --initial-controllers; for static voters, or a node that is to "
            "be added, with --no-initial-controllers"
        )
    planned = Plan(
        settings=settings,
        identity=identity,
        directory=directory,
        clean_epoch=directory.clean_epoch() if directory else UNKNOWN_EPOCH,
        new_id=new_id,
        voters=voters,
    )
    return planned._replace(settings=_identified(planned))


def _identified(planned: Plan) -> BrokerConfigs:
    directory = planned.directory
    return planned.settings.with_identity(
        planned.identity.node_id,
        None if directory is None else os.path.abspath(directory.path),
        is_alone=not planned.is_member,
    )


def _voters(
    directory: DataDirectory | None, identity: Identity, listeners: Sequence[str]
) -> "tuple[VoterNode, ...]":
    """Those of the newest snapshot; the first one may be gone, as any other.

    Raises:
        MetadataError: It is damaged where they should be.
    """
    snapshot = None if directory is None else directory.latest_snapshot_head()
    if directory is None or snapshot is None:
        return ()
    # Not before: a broker that is alone has no use for them.
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
    """Why a directory is not for a broker that is alone."""
    return (
        f"{directory.path} is that of a controller among several, and the settings speak of none: start it with "
        "those of its node, controller.listener.names among them"
    )
