"""Who a broker is, as its data directory's meta.properties tells. Format: Kafka 4.2, ``MetaProperties.java``."""

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
"""Of the file. So its cluster id is also no longer than a string of the wire may be."""

ZOOKEEPER_VERSION = 0
"""The version in ZooKeeper mode, and of a file that names none; KRaft writes version 1."""
_VERSION_MAX = 1
_NUMBER = re.compile("[0-9]{1,10}")


class Identity(NamedTuple):
    """Who this broker is; fixed when its directory is made."""

    cluster_id: str
    node_id: int
    directory_id: bytes


class StoredIdentity(NamedTuple):
    """The values of a meta.properties. ``directory_id`` is None where Kafka 3.3 to 3.6 wrote it."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None

    def completed(self, new_id: Callable[[], bytes]) -> Identity:
        """The identity, with an id for a directory that has none; a start writes it, as in Kafka.

        Args:
            new_id: Gives a `types.random_id`.
        """
        return Identity(self.cluster_id, self.node_id, self.directory_id or new_id())


class OtherReleaseError(StorageError):
    """A directory is whole, and not for this version: no backup helps.

    Attributes:
        what: The kind of directory that was found.
        advice: The way to proceed.
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what = what
        self.advice = advice


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


def encode_identity(identity: Identity) -> bytes:
    """The content of a meta.properties."""
    lines = (
        "#",
        f"cluster.id={identity.cluster_id}",
        f"directory.id={id_text(identity.directory_id)}",
        f"node.id={identity.node_id}",
        "version=1",
    )
    return ("\n".join(lines) + "\n").encode()


def decode_identity(content: bytes, path: Path, *, has_metadata: bool) -> StoredIdentity:
    """What a meta.properties says.

    Args:
        path: Of the file, for messages.
        has_metadata: Whether the directory has a metadata log, as none of ZooKeeper mode has.

    Raises:
        OtherReleaseError: It is of ZooKeeper mode, or of a newer Kafka.
        ValueError: It cannot be understood; the message says why.
    """
    found = parse_properties(content.decode())
    version = _version(found.get("version", str(ZOOKEEPER_VERSION)))
    if version > _VERSION_MAX:
        raise OtherReleaseError(
            f"{path} was written by a newer Kafka: version is '{version}', and this one reads up to {_VERSION_MAX}",
            "start the version that wrote it",
        )
    directory_id = found.get("directory.id")
    stored = StoredIdentity(
        cluster_id=_cluster_id(_required(found, "cluster.id")),
        node_id=_node_id(_required(found, "node.id" if "node.id" in found else "broker.id")),
        directory_id=None if directory_id is None else id_bytes(directory_id),
    )
    # Last: a file that lacks something is damaged, whatever version it names.
    if version == ZOOKEEPER_VERSION and not has_metadata:
        raise OtherReleaseError(
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
    if not text.isprintable():  # an escape may have made half a character of it, or a line of a log
        raise ValueError(f"cluster.id {text!r} holds what cannot be printed")
    return text


def _node_id(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > NODE_ID_MAX:
        raise ValueError(f"node id {text!r} is not a number of 0 to {NODE_ID_MAX}")
    return int(text)
