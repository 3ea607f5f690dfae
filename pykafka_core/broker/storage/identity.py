"""The identity of a broker in meta.properties of its data directory.

Format: Kafka 4.2, ``MetaProperties.java``.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pykafka_core.config import parse_properties
from pykafka_core.errors import StorageError
from pykafka_core.types import id_bytes, id_text

DEFAULT_NODE_ID = 1
NODE_ID_MAX = 2**31 - 1
SIZE_MAX = 16 * 1024
"""Maximum size of the file. This also keeps the cluster id within the limit of a protocol string.
"""

ZOOKEEPER_VERSION = 0
"""The version in ZooKeeper mode, and of a file without a version; KRaft writes version 1."""
_VERSION_MAX = 1
_NUMBER = re.compile("[0-9]{1,10}")


class Identity(NamedTuple):
    """The identity of this broker; fixed when its directory is created."""

    cluster_id: str
    node_id: int
    directory_id: bytes


class StoredIdentity(NamedTuple):
    """The values of a meta.properties. ``directory_id`` is None if Kafka 3.3 to 3.6 wrote it."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None

    def completed(self, new_id: Callable[[], bytes]) -> Identity:
        """Return the identity, with a new id for a directory without one; a start writes it, as in
        Kafka.

        Args:
            new_id: Returns a `types.random_id`.
        """
        return Identity(self.cluster_id, self.node_id, self.directory_id or new_id())


class IdentityError(StorageError):
    """meta.properties is damaged, of another release, or missing in a directory with data.

    Attributes:
        what: The problem.
        advice: How to proceed.
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what = what
        self.advice = advice


def lost_identity(what: str, directory: Path) -> IdentityError:
    """Return the error for a missing or damaged meta.properties."""
    return IdentityError(
        what,
        "restore it from a backup, or write it with the lines version=1, cluster.id (that of the other nodes; for a "
        "single broker, one of `pykafka-core random-uuid`), node.id and directory.id (`pykafka-core doctor --data-dir "
        f"{directory}` shows those that its metadata has registered)",
    )


def interrupted_format(directory: Path) -> IdentityError:
    """Return the error for a directory with the first voters and without meta.properties."""
    return IdentityError(
        f"{directory} has the first voters of a quorum and no meta.properties: its format was interrupted",
        "format it again, with the arguments of the first time",
    )


def new_identity(node_id: int | None, new_id: Callable[[], bytes]) -> Identity:
    """Return an identity for a new directory, or for a broker in memory.

    Args:
        node_id: The given node id, or None for `DEFAULT_NODE_ID`.
        new_id: Returns a new `types.random_id`.
    """
    return Identity(
        cluster_id=id_text(new_id()),
        node_id=DEFAULT_NODE_ID if node_id is None else node_id,
        directory_id=new_id(),
    )


def encode_identity(identity: Identity) -> bytes:
    """Return the content of a meta.properties."""
    lines = (
        "#",
        f"cluster.id={identity.cluster_id}",
        f"directory.id={id_text(identity.directory_id)}",
        f"node.id={identity.node_id}",
        "version=1",
    )
    return ("\n".join(lines) + "\n").encode()


def decode_identity(content: bytes, path: Path, *, has_metadata: bool) -> StoredIdentity:
    """Return the values of a meta.properties.

    Args:
        content: Content of the file.
        path: Path of the file, for messages.
        has_metadata: Whether the directory has a metadata log, which never exists in ZooKeeper
            mode.

    Raises:
        IdentityError: It is of ZooKeeper mode, or of a newer Kafka.
        ValueError: It is invalid; the message has the reason.
    """
    found = parse_properties(content.decode())
    version = _version(found.get("version", str(ZOOKEEPER_VERSION)))
    if version > _VERSION_MAX:
        raise IdentityError(
            f"{path} was written by a newer Kafka: version is '{version}', and this one reads up to {_VERSION_MAX}",
            "start the version that wrote it",
        )
    directory_id = found.get("directory.id")
    stored = StoredIdentity(
        cluster_id=_cluster_id(_required(found, "cluster.id")),
        node_id=_node_id(_required(found, "node.id" if "node.id" in found else "broker.id")),
        directory_id=None if directory_id is None else id_bytes(directory_id),
    )
    # Checked last: a file with missing values is damaged, whatever its version.
    if version == ZOOKEEPER_VERSION and not has_metadata:
        raise IdentityError(
            f"{path} is of a broker in ZooKeeper mode: its topics are in ZooKeeper, not in this directory",
            "migrate its cluster to KRaft with Apache Kafka 3.9 (KIP-866) first",
        )
    return stored


def _version(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"version is {text!r}, not a number")
    return int(text)


def _required(found: dict[str, str], name: str) -> str:
    text = found.get(name)
    if not text:
        raise ValueError(f"{name} is missing")
    return text


def _cluster_id(text: str) -> str:
    if not text.isprintable():  # an escape may produce a surrogate or a line break
        raise ValueError(f"cluster.id {text!r} holds what cannot be printed")
    return text


def _node_id(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > NODE_ID_MAX:
        raise ValueError(f"node id {text!r} is not a number of 0 to {NODE_ID_MAX}")
    return int(text)
