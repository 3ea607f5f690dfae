"""Roles, identity and listeners of a broker: the settings that only its start reads."""

from collections.abc import Mapping
from typing import NamedTuple

from .listeners import Listener
from .validation import client_listeners, controller_listeners, listed


class Voter(NamedTuple):
    """A node of the metadata quorum in ``controller.quorum.voters``."""

    node_id: int
    host: str
    port: int


class StartConfig(NamedTuple):
    """One broker's identity and addresses, from validated settings.

    Attributes:
        node_id: ``None`` when not given: the id in meta.properties is used, or 1.
        log_dir: ``None`` when neither ``log.dirs`` nor ``log.dir`` is given.
        listeners: Listeners for clients, without controller listeners. Empty when not given.
        advertised_listeners: The given ones; empty means the listeners themselves.
        inter_broker_listener: The name of the inter-broker listener, in capitals. Empty when not
            given.
        controller_listeners: This node's controller listeners, if it is a controller.
        advertised_controllers: Their advertised addresses; empty means the listeners themselves.
        controller_names: Names of controller listeners, of this node or of others.
        is_broker: Whether this node serves clients and has partitions.
        is_controller: Whether this node is, or will become, a voter of the metadata quorum.
        voters: The nodes in ``controller.quorum.voters``.
        bootstrap_servers: The addresses in ``controller.quorum.bootstrap.servers``.
    """

    node_id: int | None
    rack: str | None
    log_dir: str | None
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    inter_broker_listener: str
    controller_listeners: tuple[Listener, ...]
    advertised_controllers: tuple[Listener, ...]
    controller_names: tuple[str, ...]
    is_broker: bool
    is_controller: bool
    voters: tuple[Voter, ...]
    bootstrap_servers: tuple[str, ...]

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> "StartConfig":
        """Read settings that `validate` has accepted."""
        return cls(
            node_id=_node_id(given),
            rack=given["broker.rack"].strip() if "broker.rack" in given else None,
            log_dir=next(iter(listed(given, "log.dirs") or listed(given, "log.dir")), None),
            listeners=client_listeners(given, "listeners"),
            advertised_listeners=client_listeners(given, "advertised.listeners"),
            inter_broker_listener=given.get("inter.broker.listener.name", "").strip().upper(),
            controller_listeners=controller_listeners(given, "listeners"),
            advertised_controllers=controller_listeners(given, "advertised.listeners"),
            controller_names=tuple(
                name.upper() for name in listed(given, "controller.listener.names")
            ),
            is_broker=set(listed(given, "process.roles")) != {"controller"},
            is_controller=set(listed(given, "process.roles")) != {"broker"},
            voters=tuple(map(_voter, listed(given, "controller.quorum.voters"))),
            bootstrap_servers=listed(given, "controller.quorum.bootstrap.servers"),
        )


def _node_id(given: Mapping[str, str]) -> int | None:
    text = given.get("node.id", given.get("broker.id"))
    return None if text is None or int(text) < 0 else int(text)


def _voter(text: str) -> Voter:
    node_id, _, address = text.partition("@")
    host, _, port = address.rpartition(":")
    return Voter(int(node_id), host.strip("[]"), int(port))
