"""Effective values: where each setting's value comes from, and what the core is told.

A broker setting is looked up in four layers: altered for this broker, altered for the whole
cluster, given at start, and
the table's default. A topic setting is its own override or else the first of its broker synonyms
that is set:
``retention.ms`` asks ``log.retention.ms``, ``log.retention.minutes`` and ``log.retention.hours``.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from pykafka_core.errors import ConfigurationError
from pykafka_core.types import Durability

from .setting import Setting, Support, Synonym
from .start import StartConfig
from .table import broker_settings, topic_settings
from .validation import validate
from .validators import InvalidValueError, Value

_NOTHING: Mapping[str, str] = MappingProxyType({})
# A durability is a default of these topic settings: the broker setting that gives it.
_FLUSHING: Mapping[Durability, Mapping[str, tuple[str, str]]] = {
    "fsync": {"flush.messages": ("log.flush.interval.messages", "1")},
    "interval": {"flush.ms": ("log.flush.interval.ms", "100")},
    "os": {},
    "memory": {},
}


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigValue(NamedTuple):
    """A value, the name it was set by, and where."""

    name: str
    value: str | None
    source: ConfigSource

    def masked(self) -> "ConfigValue":
        """Return it without its value."""
        return ConfigValue(name=self.name, value=None, source=self.source)


class BrokerConfigs:
    """A broker's settings by layer, as text by Kafka name. Not to be changed.

    Args:
        static: Given at start.
        cluster_default: Altered for all brokers (ConfigRecords of the empty broker name).
        broker: Altered for this broker (ConfigRecords of its id).

    Raises:
        ConfigurationError: Lists every problem of ``static``, each with what to do.
    """

    __slots__ = "broker", "cluster_default", "static"

    def __init__(
        self,
        static: Mapping[str, str] = _NOTHING,
        cluster_default: Mapping[str, str] = _NOTHING,
        broker: Mapping[str, str] = _NOTHING,
    ) -> None:
        problems = validate(static)
        if problems:
            raise ConfigurationError([str(problem) for problem in problems])
        # Kafka's two names of one number: the one given sets the other.
        for given, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if given in static and other not in static:
                static = {**static, other: static[given]}
        self.static = static
        self.cluster_default = cluster_default
        self.broker = broker

    def with_dynamic(
        self, cluster_default: Mapping[str, str], broker: Mapping[str, str]
    ) -> "BrokerConfigs":
        """Return the same broker with other altered settings."""
        return BrokerConfigs(self.static, _usable(cluster_default), _usable(broker))

    def with_durability(self, durability: Durability) -> "BrokerConfigs":
        """Return the same broker with what ``durability`` sets, where nothing else was given."""
        flushing = {
            name: value
            for topic_name, (name, value) in _FLUSHING[durability].items()
            if not self._is_given(topic_name)
        }
        return BrokerConfigs({**self.static, **flushing}, self.cluster_default, self.broker)

    @property
    def start(self) -> StartConfig:
        """Who this broker is and where it listens."""
        return StartConfig.from_settings(self.static)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line that names the given settings without meaning here, or nothing."""
        ignored = [n for n in self.static if broker_settings()[n].support is Support.NO_MEANING]
        if not ignored:
            return ()
        text = "these settings have no meaning in this broker and are ignored: "
        return (text + ", ".join(ignored),)

    def int(self, name: str) -> int:
        """Return the effective value of a broker setting that is a number and has a default."""
        value = self._typed(name)
        assert isinstance(value, int), name
        return value

    def boolean(self, name: str) -> bool:
        """Return the effective value of a broker setting that is true or false."""
        value = self._typed(name)
        assert isinstance(value, bool), name
        return value

    def string(self, name: str) -> str | None:
        """Return the effective text of a broker setting as Kafka prints it."""
        text = self.broker_value(name)
        return None if text is None else broker_settings()[name].canonical(text)

    def broker_value(self, name: str) -> str | None:
        """Return the effective text of a broker setting, ``None`` when it is null."""
        return next((found.value for found in self._found((name,))), None)

    def broker_synonyms(self, name: str) -> tuple[ConfigValue, ...]:
        """Return what sets a broker setting, most specific first, as DescribeConfigs lists it.

        Settings that stand for one another (``log.retention.ms`` and ``.hours``) are listed
        together, from the asked name on.
        """
        found = tuple(self._found(_families().get(name, (name,))))
        start = next((i for i, value in enumerate(found) if value.name == name), len(found))
        return found[start:]

    def inherited_value(self, setting: Setting) -> str | None:
        """Return what a topic or group setting is when it is not overridden."""
        for synonym in setting.synonyms:
            text = self.broker_value(synonym.name)
            if text is not None:
                return _multiplied(text, synonym)
        return setting.default

    def topic_value(self, name: str, overrides: Mapping[str, str]) -> str | None:
        """Return the effective text of a topic setting."""
        setting = topic_settings()[name]
        if name in overrides:
            return setting.shown(overrides[name])
        return self.inherited_value(setting)

    def log_defaults(self) -> dict[str, str]:
        """Return the broker's defaults of every topic setting, by topic-level name, for the core."""
        values = {name: self.inherited_value(s) for name, s in topic_settings().items()}
        return {name: value for name, value in values.items() if value is not None}

    def broker_settings(self) -> dict[str, str]:
        """Return the effective broker settings that are honoured, by Kafka name, for the core."""
        names = (n for n, s in broker_settings().items() if s.support is Support.HONOURED)
        values = {name: self.broker_value(name) for name in names}
        return {
            name: broker_settings()[name].canonical(value)
            for name, value in values.items()
            if value is not None
        }

    def _typed(self, name: str) -> Value:
        text = self.broker_value(name)
        assert text is not None, f"{name} has a default"
        return broker_settings()[name].parse(text)

    def _is_given(self, topic_name: str) -> bool:
        names = (synonym.name for synonym in topic_settings()[topic_name].synonyms)
        return any(name in self.static for name in names)

    def _found(self, names: tuple[str, ...]) -> Iterator[ConfigValue]:
        layers = (
            (self.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.cluster_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
        )
        for layer, source in layers:
            for name in names:
                if name in layer:
                    yield ConfigValue(name=name, value=layer[name], source=source)
        for name in names:
            setting = broker_settings().get(name)
            if setting is not None and setting.default is not None:
                yield ConfigValue(
                    name=name, value=setting.default, source=ConfigSource.DEFAULT_CONFIG
                )


def canonical_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return a topic's stored overrides as the core takes them: known names, canonical values.

    What Apache Kafka stored and this table does not know, or would not take today, is left out: a
    topic must still open.
    """
    canonical = {}
    for name, text in overrides.items():
        setting = topic_settings().get(name)
        if setting is None:
            continue
        try:
            canonical[name] = setting.canonical(text)
        except InvalidValueError:
            continue
    return canonical


@cache
def _families() -> Mapping[str, tuple[str, ...]]:
    """Broker settings that stand for one another, by each of their names."""
    synonyms = (setting.synonyms for setting in topic_settings().values())
    families = (tuple(synonym.name for synonym in family) for family in synonyms)
    return {name: family for family in families for name in family}


def _usable(layer: Mapping[str, str]) -> Mapping[str, str]:
    """Altered settings without those that another version stored and this table would not take."""
    return {n: v for n, v in layer.items() if n not in broker_settings() or _is_valid(n, v)}


def _is_valid(name: str, text: str) -> bool:
    try:
        broker_settings()[name].parse(text)
    except InvalidValueError:
        return False
    return True


def _multiplied(text: str, synonym: Synonym) -> str:
    if synonym.factor == 1:
        return broker_settings()[synonym.name].canonical(text)
    return str(int(text) * synonym.factor)
