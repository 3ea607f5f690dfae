"""Validates the settings given at the start: all problems are found before anything starts."""

import re
from collections.abc import Iterator, Mapping

from .layers import Layers
from .listeners import Listener, ListenerError, parse_listeners
from .rules import SettingProblem, joint_problems
from .setting import ConfigType, Setting, Support
from .table import broker_settings
from .validators import InvalidValueError, Value

_REPLICA_SELECTORS = tuple(
    f"org.apache.kafka.common.replica.{name}"
    for name in ("LeaderSelector", "RackAwareReplicaSelector")
)
_PROTOCOL_MAP = "listener.security.protocol.map"
_INT_MAX = 2**31 - 1
_PORT_MAX = 2**16 - 1
_QUORUM = {
    "controller.quorum.voters": (r"(\d+)@[^@\s]+:(\d+)", "ID@HOST:PORT"),
    "controller.quorum.bootstrap.servers": (r"[^@\s]+:(\d+)", "HOST:PORT"),
}


def validate(given: Mapping[str, str]) -> tuple[SettingProblem, ...]:
    """Return every problem of settings given at the start, in their order; empty if they are
    valid.
    """
    problems = [problem for name in given for problem in _problems_of(name, given[name])]
    if not problems:
        problems += [*_start_problems(given), *joint_problems(Layers(given))]
    return tuple(problems)


def _problems_of(name: str, text: str) -> Iterator[SettingProblem]:
    setting = broker_settings().get(name)
    if setting is None:
        yield _unknown(name)
        return
    try:
        value = setting.parse(text)
    except InvalidValueError as error:
        yield SettingProblem(name, str(error), f"{name} takes {setting.accepted}")
        return
    if setting.support is Support.NOT_BUILT and not _is_default(setting, value):
        shown = "leave it empty" if not setting.default else f"set it to {setting.default}"
        yield SettingProblem(name, f"{name} is not built yet", f"remove it or {shown}")


def _unknown(name: str) -> SettingProblem:
    from difflib import get_close_matches  # slow to import, only needed for a typing error

    if name.startswith("listener.name."):
        return SettingProblem(name, f"{name} is not built yet", "remove it")
    close = get_close_matches(name, broker_settings(), n=1, cutoff=0.8)
    return SettingProblem(
        name,
        f"{name} is not a broker setting of Kafka 4.2",
        f"did you mean {close[0]}?" if close else "remove it",
    )


def _is_default(setting: Setting, value: Value) -> bool:
    if setting.type is ConfigType.CLASS:  # an empty class name is invalid in Kafka
        return value == setting.default
    return value in ("", ()) or (
        setting.default is not None and value == setting.parse(setting.default)
    )


def _start_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    if {"broker.id", "node.id"} <= given.keys() and int(given["broker.id"]) != int(
        given["node.id"]
    ):
        yield SettingProblem("broker.id", "broker.id and node.id differ", "remove broker.id")
    for name in ("log.dirs", "log.dir"):
        directories = set(listed(given, name))
        if name in given and len(directories) != 1:
            text = f"{name} names {len(directories)} directories; this broker keeps its log in one"
            yield SettingProblem(name, text, "name exactly one directory")
    yield from _quorum_problems(given)
    yield from _selector_problems(given)
    yield from _protocol_problems(given)
    for name in ("listeners", "advertised.listeners"):
        try:
            listeners = client_listeners(given, name)
        except ListenerError as error:
            yield SettingProblem(name, str(error), error.advice)
            continue
        yield from _listener_problems(given, name, listeners)


def _selector_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """There is no Java here: only Kafka's own classes have an equivalent."""
    name = "replica.selector.class"
    if given.get(name, "") not in ("", *_REPLICA_SELECTORS):
        text = f"{name}: {given[name]} does not have an equivalent in this broker"
        yield SettingProblem(name, text, f"use {' or '.join(_REPLICA_SELECTORS)}")


def _quorum_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """Check the roles of this node, and the settings that list nodes of the metadata quorum."""
    for name, (pattern, form) in _QUORUM.items():
        for node in listed(given, name):
            if not _names_a_node(pattern, node):
                text = f"{name}: {node!r} is not a node"
                yield SettingProblem(name, text, f"write it as {form}")
    roles = set(listed(given, "process.roles"))
    yield from _voter_problems(given, roles)
    if roles == {"controller"}:
        yield from _controller_only_problems(given)


def _names_a_node(pattern: str, node: str) -> bool:
    """Return whether it matches ``pattern``, whose groups are an optional id, and a port."""
    match = re.fullmatch(pattern, node)
    if match is None:
        return False
    *ids, port = (int(number[:20]) for number in match.groups())
    return all(number <= _INT_MAX for number in ids) and 0 < port <= _PORT_MAX


def _voter_problems(given: Mapping[str, str], roles: set[str]) -> Iterator[SettingProblem]:
    """Check that a controller is one of the static voters, and that another node is not."""
    name = "controller.quorum.voters"
    is_broker = roles == {"broker"}
    voters, node_id = listed(given, name), given.get("node.id", "").strip()
    ids = [voter.partition("@")[0] for voter in voters]
    is_several = is_broker or roles == {"controller"} or len(voters) > 1
    if is_broker and not voters and not listed(given, "controller.quorum.bootstrap.servers"):
        name = "controller.quorum.bootstrap.servers"
        text = f"{name} does not contain a controller"
        yield SettingProblem(name, text, "name some of them as HOST:PORT")
    elif is_several and not node_id:
        yield SettingProblem("node.id", "node.id is missing", "give each node of a cluster its own")
    elif is_broker and node_id in ids:
        text = f"{name} names this node, {node_id}, which is not a controller"
        yield SettingProblem(name, text, "name the controllers, or set process.roles")
    elif not is_broker and voters and node_id and node_id not in ids:
        text = f"{name} names {', '.join(ids)}, and not this node, {node_id}, which is a controller"
        yield SettingProblem(name, text, "name this node too, or set process.roles=broker")


def _controller_only_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """Check that a node that is only a controller has no listeners for clients."""
    names = "controller.listener.names"
    if not listed(given, names):
        text = f"{names} is missing, and process.roles is controller"
        yield SettingProblem(names, text, "name the listener of controllers, such as CONTROLLER")
        return
    for name in ("listeners", "advertised.listeners"):
        try:
            others = [listener.name for listener in client_listeners(given, name)]
        except ListenerError:  # reported for itself
            continue
        if others:
            text = f"{name} has {', '.join(others)}, and a node that is controller only serves no clients"
            advice = f"leave only those that {names} names, or set process.roles=broker,controller"
            yield SettingProblem(name, text, advice)


def _listener_problems(
    given: Mapping[str, str], name: str, listeners: tuple[Listener, ...]
) -> Iterator[SettingProblem]:
    protocols = _protocols(given)
    for listener in listeners:
        protocol = protocols.get(listener.name)
        if protocol is None:
            text = f"{name}: listener.security.protocol.map does not contain {listener.name}"
            yield SettingProblem(name, text, f"add {listener.name}:PLAINTEXT to it")
        elif protocol != "PLAINTEXT":
            text = f"{name}: {listener.name} has the protocol {protocol}, which is not built yet"
            yield SettingProblem(name, text, "use a PLAINTEXT listener")
        if name == "advertised.listeners" and listener.host in ("", "0.0.0.0", "::"):
            text = f"{name}: {listener} is not an address that a client can connect to"
            yield SettingProblem(name, text, "name a host")
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        yield SettingProblem(
            name, f"{name} has two listeners with the same name", "give each its own name"
        )


def _protocol_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """Check that other settings only refer to existing listeners."""
    for entry in listed(given, _PROTOCOL_MAP):
        if ":" not in entry:
            text = f"{_PROTOCOL_MAP}: {entry!r} is not NAME:PROTOCOL"
            yield SettingProblem(_PROTOCOL_MAP, text, "write it as NAME:PLAINTEXT")
    protocols = _protocols(given)
    if not protocols:
        text = f"{_PROTOCOL_MAP}: no security protocol is defined for listener PLAINTEXT"
        yield SettingProblem(_PROTOCOL_MAP, text, "add PLAINTEXT:PLAINTEXT to it")
    inter_broker = "inter.broker.listener.name"
    if inter_broker in given and given[inter_broker].strip().upper() not in protocols:
        text = f"{inter_broker}: {_PROTOCOL_MAP} does not name {given[inter_broker]!r}"
        yield SettingProblem(inter_broker, text, "name a listener")
    early = "early.start.listeners"
    if unknown := set(listed(given, early)) - _named(given):
        text = f"{early} contains {', '.join(sorted(unknown))}, which listeners does not"
        yield SettingProblem(early, text, "remove it")


def _named(given: Mapping[str, str]) -> set[str]:
    """Return the names of all listeners, including controller listeners."""
    try:
        listeners = parse_listeners(given.get("listeners", ""))
    except ListenerError:  # reported for itself
        return set(listed(given, "early.start.listeners"))
    return {one.name for one in listeners} | {*listed(given, "controller.listener.names")}


def _protocols(given: Mapping[str, str]) -> dict[str, str]:
    text = given.get(_PROTOCOL_MAP, broker_settings()[_PROTOCOL_MAP].default) or ""
    pairs = (part.strip().partition(":") for part in text.split(",") if part.strip())
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def client_listeners(given: Mapping[str, str], name: str) -> tuple[Listener, ...]:
    """Return the listeners in a setting, without controller listeners.

    Raises:
        ListenerError: One of them is malformed.
    """
    hidden = {item.upper() for item in listed(given, "controller.listener.names")}
    if name not in given:
        return ()
    return tuple(one for one in parse_listeners(given[name]) if one.name not in hidden)


def controller_listeners(given: Mapping[str, str], name: str) -> tuple[Listener, ...]:
    """Return the controller listeners in a setting, for other controllers and brokers.

    Raises:
        ListenerError: One of them is malformed.
    """
    names = {item.upper() for item in listed(given, "controller.listener.names")}
    listeners = parse_listeners(given.get(name, ""))
    return tuple(one for one in listeners if one.name in names)


def listed(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the items of a list setting; empty if it is not given."""
    return tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())
