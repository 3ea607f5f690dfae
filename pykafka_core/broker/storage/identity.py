"""Who a broker is, as its data directory's meta.properties tells. Format: Kafka 4.2, ``MetaProperties.java``."""

import re
from collections.abc import Callable
from typing import NamedTuple

from pykafka_core.config import parse_properties
from pykafka_core.types import id_bytes, id_text

DEFAULT_NODE_ID = 1
NODE_ID_MAX = 2**31 - 1
SIZE_MAX = 16 * 1024
"""Of the file. So its cluster id is also no longer than a string of the wire may be."""

_VERSIONS = ("0", "1")
_NUMBER = re.compile("[0-9]{1,10}")


class Identity(NamedTuple):
    """Who this broker is; fixed when its directory is made."""

    cluster_id: str
    node_id: int
    directory_id: bytes


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


def decode_identity(content: bytes) -> Identity:
    """What a meta.properties says.

    Raises:
        ValueError: It cannot be understood; the message says why.
    """
    found = parse_properties(content.decode())
    version = found.get("version", "0")  # Kafka's reader takes none for the first
    if version not in _VERSIONS:
        raise ValueError(f"version is {version!r}, not one of {', '.join(_VERSIONS)}")
    return Identity(
        cluster_id=_cluster_id(_required(found, "cluster.id")),
        node_id=_node_id(_required(found, "node.id" if "node.id" in found else "broker.id")),
        directory_id=id_bytes(_required(found, "directory.id")),
    )


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
