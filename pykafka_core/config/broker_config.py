"""What a broker is started with: every problem found before anything starts, then frozen values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .layers import ConfigLayers
from .listeners import Listener, ListenerError, parse_listeners
from .problems import InvalidSettingsError, SettingProblem
from .setting import ConfigType, Setting, Support
from .table import broker_settings
from .validators import InvalidValueError, Value

COMPACTION_MISSING = "compacted topics cannot be created until the group coordinators exist"


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerConfig:
    """Checked settings of one broker at its start.

    Attributes:
        node_id: ``None`` when not given: meta.properties or 1 decides.
        log_dir: ``None`` when neither ``log.dirs`` nor ``log.dir`` is given.
        listeners: Those that clients may use; controller listeners are left out. Empty when not
            given.
        advertised_listeners: As given; empty means the listeners themselves.
        static: Everything that was given, as text by Kafka name.
        ignored: Given names that have no meaning here, in order.
    """

    node_id: int | None
    rack: str | None
    log_dir: str | None
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    auto_create_topics: bool
    delete_topics: bool
    num_partitions: int
    default_replication_factor: int
    retention_check_interval_ms: int
    static: Mapping[str, str]
    ignored: tuple[str, ...]

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> "BrokerConfig":
        """Check settings by Kafka name and return them typed.

        Raises:
            InvalidSettingsError: Lists every problem, each with what to do.
        """
        problems = validate(given)
        if problems:
            raise InvalidSettingsError(problems)
        values = _Values(given)
        return cls(
            node_id=_node_id(given),
            rack=values.text("broker.rack"),
            log_dir=_log_dir(given),
            listeners=_client_listeners(given, "listeners"),
            advertised_listeners=_client_listeners(given, "advertised.listeners"),
            auto_create_topics=values.flag("auto.create.topics.enable"),
            delete_topics=values.flag("delete.topic.enable"),
            num_partitions=values.number("num.partitions"),
            default_replication_factor=values.number("default.replication.factor"),
            retention_check_interval_ms=values.number("log.retention.check.interval.ms"),
            static=MappingProxyType(dict(given)),
            ignored=_ignored(given),
        )

    @property
    def warning(self) -> str | None:
        """One line that names the given settings without meaning here, or ``None``."""
        if not self.ignored:
            return None
        names = ", ".join(self.ignored)
        return f"these settings have no meaning in this broker and are ignored: {names}"


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
        yield SettingProblem(name, str(error), f"see docs/SETTINGS.md for the values of {name}")
        return
    if setting.support is Support.NOT_BUILT and not _is_default(setting, value):
        shown = "leave it empty" if not setting.default else f"set it to {setting.default}"
        yield SettingProblem(name, f"{name} is not built yet", f"remove it or {shown}")
    if name == "log.cleanup.policy" and isinstance(value, tuple) and "compact" in value:
        yield SettingProblem(name, COMPACTION_MISSING, "use log.cleanup.policy=delete")
    if (low := _LOWEST.get(name)) is not None and isinstance(value, int) and value < low:
        yield SettingProblem(name, f"{name} must be at least {low}, not {value}", "raise it")
    if name.startswith("log.retention.") and name in _TIMES and value == 0:
        yield SettingProblem(name, f"{name} must not be 0", "use -1 to keep records forever")


# Kafka checks these when it starts, apart from the bounds in its table.
_LOWEST = {"log.roll.ms": 1, "log.roll.jitter.ms": 0, "log.flush.interval.ms": 0}
_TIMES = frozenset({"log.retention.ms", "log.retention.minutes", "log.retention.hours"})


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
        directories = _list(given, name)
        if name in given and len(directories) != 1:
            text = f"{name} names {len(directories)} directories; this broker keeps its log in one"
            yield SettingProblem(name, text, "name exactly one directory")
    for name in ("listeners", "advertised.listeners"):
        try:
            listeners = _client_listeners(given, name)
        except ListenerError as error:
            yield SettingProblem(name, str(error), "write it as PLAINTEXT://HOST:PORT")
            continue
        yield from _listener_problems(given, name, listeners)


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
    text = ConfigLayers(static=given).broker_value("listener.security.protocol.map") or ""
    pairs = (part.strip().partition(":") for part in text.split(",") if part.strip())
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _client_listeners(given: Mapping[str, str], name: str) -> tuple[Listener, ...]:
    hidden = {item.upper() for item in _list(given, "controller.listener.names")}
    if name not in given:
        return ()
    return tuple(one for one in parse_listeners(given[name]) if one.name not in hidden)


def _list(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())


def _node_id(given: Mapping[str, str]) -> int | None:
    text = given.get("node.id", given.get("broker.id"))
    return None if text is None or int(text) < 0 else int(text)


def _log_dir(given: Mapping[str, str]) -> str | None:
    return next(iter(_list(given, "log.dirs") or _list(given, "log.dir")), None)


def _ignored(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(n for n in given if broker_settings()[n].support is Support.NO_MEANING)


class _Values:
    """Typed values of checked settings, defaults included."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._layers = ConfigLayers(static=given)

    def text(self, name: str) -> str | None:
        value = self._layers.broker_value(name)
        return value.strip() if value is not None else None

    def number(self, name: str) -> int:
        value = self._value(name, ConfigType.INT, ConfigType.LONG)
        assert isinstance(value, int)
        return value

    def flag(self, name: str) -> bool:
        return self._value(name, ConfigType.BOOLEAN) is True

    def _value(self, name: str, *types: ConfigType) -> Value:
        setting, text = broker_settings()[name], self._layers.broker_value(name)
        assert setting.type in types
        assert text is not None
        return setting.parse(text)
