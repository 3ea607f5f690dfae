"""Settings given at start: every problem is found before anything starts."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .listeners import Listener, ListenerError, parse_listeners
from .setting import Setting, Support
from .table import broker_settings
from .validators import InvalidValueError, Value

COMPACTION_MISSING = "compacted topics cannot be created until the group coordinators exist"

_PROTOCOL_MAP = "listener.security.protocol.map"
# Kafka checks these when it starts, apart from the bounds in its table.
_LOWEST = {"log.roll.ms": 1, "log.roll.jitter.ms": 0, "log.flush.interval.ms": 0}
_TIMES = frozenset({"log.retention.ms", "log.retention.minutes", "log.retention.hours"})


class SettingProblem(NamedTuple):
    """One setting that cannot be used.

    Attributes:
        name: Its Kafka name.
        text: What is wrong.
        advice: What to do.
    """

    name: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}"


def validate(given: Mapping[str, str]) -> tuple[SettingProblem, ...]:
    """Return every problem of settings given at start, in their order; empty when there is none."""
    problems = [problem for name in given for problem in _problems_of(name, given[name])]
    if not problems:
        problems.extend(_joint_problems(given))
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
    if name == "log.cleanup.policy" and isinstance(value, tuple) and "compact" in value:
        yield SettingProblem(name, COMPACTION_MISSING, "use log.cleanup.policy=delete")
    if (low := _LOWEST.get(name)) is not None and isinstance(value, int) and value < low:
        yield SettingProblem(name, f"{name} must be at least {low}, not {value}", "raise it")
    if name in _TIMES and value == 0:
        yield SettingProblem(name, f"{name} must not be 0", "use -1 to keep records forever")


def _unknown(name: str) -> SettingProblem:
    from difflib import get_close_matches  # slow to import, needed for a typing error only

    if name.startswith("listener.name."):
        return SettingProblem(name, f"{name} is not built yet", "remove it")
    close = get_close_matches(name, broker_settings(), n=1, cutoff=0.8)
    return SettingProblem(
        name,
        f"{name} is not a broker setting of Kafka 4.2",
        f"did you mean {close[0]}?" if close else "remove it",
    )


def _is_default(setting: Setting, value: Value) -> bool:
    return value in ("", ()) or (
        setting.default is not None and value == setting.parse(setting.default)
    )


def _joint_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    if given.get("broker.id", "-1").strip() not in (
        "-1",
        given.get("node.id", given.get("broker.id")),
    ):
        yield SettingProblem("broker.id", "broker.id and node.id differ", "remove broker.id")
    for name in ("log.dirs", "log.dir"):
        directories = listed(given, name)
        if name in given and len(directories) != 1:
            text = f"{name} names {len(directories)} directories; this broker keeps its log in one"
            yield SettingProblem(name, text, "name exactly one directory")
    yield from _quorum_problems(given)
    yield from _memory_problems(given)
    for name in ("listeners", "advertised.listeners"):
        try:
            listeners = client_listeners(given, name)
        except ListenerError as error:
            yield SettingProblem(name, str(error), error.advice)
            continue
        yield from _listener_problems(given, name, listeners)


def _quorum_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """This node alone is the quorum, and it serves clients too."""
    roles = listed(given, "process.roles")
    if roles and set(roles) != {"broker", "controller"}:
        text = f"process.roles: a node that is {roles[0]} only is not built yet"
        yield SettingProblem("process.roles", text, "set it to broker,controller")
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        count = len(listed(given, name))
        if count > 1:
            text = f"{name} names {count} nodes, and a quorum of several is not built yet"
            yield SettingProblem(name, text, "name this node alone, or remove it")


def _memory_problems(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """Kafka wants room for one request of any size that is allowed."""
    queued, largest = (
        int(given.get(name, broker_settings()[name].default or 0))
        for name in ("queued.max.request.bytes", "socket.request.max.bytes")
    )
    if 0 < queued < largest:
        name = "queued.max.request.bytes"
        text = f"{name} must be at least socket.request.max.bytes, which is {largest}"
        yield SettingProblem(name, text, "raise it, or lower socket.request.max.bytes")


def _listener_problems(
    given: Mapping[str, str], name: str, listeners: tuple[Listener, ...]
) -> Iterator[SettingProblem]:
    protocols = _protocols(given)
    for listener in listeners:
        protocol = protocols.get(listener.name)
        if protocol is None:
            text = (
                f"{name}: listener.security.protocol.map does not say what {listener.name} speaks"
            )
            yield SettingProblem(name, text, f"add {listener.name}:PLAINTEXT to it")
        elif protocol != "PLAINTEXT":
            text = f"{name}: {listener.name} speaks {protocol}, which is not built yet"
            yield SettingProblem(name, text, "use a PLAINTEXT listener")
        if name == "advertised.listeners" and listener.host in ("", "0.0.0.0", "::"):
            text = f"{name}: {listener} is no address that a client can connect to"
            yield SettingProblem(name, text, "name a host")
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        yield SettingProblem(
            name, f"{name} has two listeners of one name", "give each its own name"
        )


def _protocols(given: Mapping[str, str]) -> dict[str, str]:
    text = given.get(_PROTOCOL_MAP, broker_settings()[_PROTOCOL_MAP].default) or ""
    pairs = (part.strip().partition(":") for part in text.split(",") if part.strip())
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def client_listeners(given: Mapping[str, str], name: str) -> tuple[Listener, ...]:
    """Return the listeners that a setting names, without those of controllers.

    Raises:
        ListenerError: One of them is malformed.
    """
    hidden = {item.upper() for item in listed(given, "controller.listener.names")}
    if name not in given:
        return ()
    return tuple(one for one in parse_listeners(given[name]) if one.name not in hidden)


def listed(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the items of a list setting, none when it is not given."""
    return tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())
