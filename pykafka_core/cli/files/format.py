"""``format``: create a data directory for a node of a cluster, as ``kafka-storage format`` does."""

import os
import re
from pathlib import Path

from pykafka_core.broker.storage.format import format_directory
from pykafka_core.broker.storage.identity import NODE_ID_MAX, Identity
from pykafka_core.broker.storage.voters import VoterNode
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.errors import StorageError
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import id_bytes, id_text, random_id

PORT_MAX = 2**16 - 1
_VOTER = re.compile(r"(\d{1,10})@(.+):(\d{1,5}):([A-Za-z0-9_-]{22})\Z")
_ADVICE = (
    "write each as ID@HOST:PORT:DIRECTORY_ID, with a directory id from `pykafka-core random-uuid`"
)


def random_uuid() -> None:
    """Print an id for a cluster or a directory."""
    print(id_text(random_id(os.urandom)))


def format_node(
    directory: Path,
    *,
    node_id: int,
    cluster_id: str,
    controllers: str | None,
    standalone: str | None = None,
) -> None:
    """Format a directory; every controller needs the same ``controllers``.

    Args:
        standalone: ``HOST:PORT`` of this node, if it is the only voter.

    Raises:
        CliError: The arguments are invalid, or the directory is formatted already.
    """
    if standalone is not None:
        controllers = f"{node_id}@{standalone}:{id_text(random_id(os.urandom))}"
    voters = [_voter(text) for text in controllers.split(",")] if controllers else []
    own = [voter.key.directory_id for voter in voters if voter.key.node_id == node_id]
    if voters and not own:
        text = f"node {node_id} is not among the controllers {controllers}"
        raise CliError(
            text,
            "leave --initial-controllers out for a node that is only a broker",
            exit_code=USAGE,
        )
    try:
        id_bytes(cluster_id)
    except ValueError as error:
        advice = "use an id from `pykafka-core random-uuid`, the same on every node"
        raise CliError(
            f"{cluster_id!r} is not a cluster id: {error}", advice, exit_code=USAGE
        ) from error
    directory_id = own[0] if own else random_id(os.urandom)
    try:
        format_directory(directory, Identity(cluster_id, node_id, directory_id), voters)
    except StorageError as error:
        raise CliError(str(error)) from error
    print(
        f"formatted {directory} node={node_id} cluster={cluster_id} directory={id_text(directory_id)}"
    )


def _voter(text: str) -> VoterNode:
    found = _VOTER.match(text.strip())
    if found is None:
        raise CliError(f"{text!r} is not a controller", _ADVICE, exit_code=USAGE)
    node_id, port = int(found[1]), int(found[3])
    if node_id > NODE_ID_MAX or not 1 <= port <= PORT_MAX:
        text = f"{text!r} is not a controller: ids are 0 to {NODE_ID_MAX}, ports 1 to {PORT_MAX}"
        raise CliError(text, _ADVICE, exit_code=USAGE)
    try:
        directory_id = id_bytes(found[4])
    except ValueError as error:
        raise CliError(f"{text!r}: {error}", _ADVICE, exit_code=USAGE) from error
    return VoterNode(ReplicaKey(node_id, directory_id), found[2].strip("[]"), port)
