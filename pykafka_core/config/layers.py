"""Effective values: where each setting's value comes from, and what the core is told.

A broker setting is looked up in four layers: altered for this broker, altered for the whole
cluster, given at start, and
the table's default. A topic setting is its own override or else the first of its broker synonyms
that is set:
``retention.ms`` asks ``log.retention.ms``, ``log.retention.minutes`` and ``log.retention.hours``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

from .setting import Scope, Setting, Support, Synonym
from .table import broker_settings, settings, topic_settings
from .validators import InvalidValueError

_NOTHING: Mapping[str, str] = MappingProxyType({})
# Defaults of these come from the broker's durability, so they are told to the core only when
# someone set them.
_BY_DURABILITY = frozenset({"flush.messages", "flush.ms"})


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


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigValue:
    """A value, the name it was set by, and where."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigLayers:
    """A broker's settings by layer, as text by Kafka name.

    Attributes:
        per_broker: Altered for this broker (ConfigRecords of its id).
        cluster: Altered for all brokers (ConfigRecords of the empty broker name).
        static: Given at start.
    """

    per_broker: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    cluster: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    static: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    def broker_value(self, name: str) -> str | None:
        """Return the effective text of a broker setting, ``None`` when it is null."""
        return next((found.value for found in self._found((name,))), None)

    def broker_synonyms(self, name: str) -> tuple[ConfigValue, ...]:
        """Return what sets a broker setting, most specific first, as DescribeConfigs lists it.

        Settings that stand for one another (``log.retention.ms`` and ``.hours``) are listed
        together, from the
        asked name on.
        """
        found = tuple(self._found(_family(name)))
        start = next((i for i, value in enumerate(found) if value.name == name), len(found))
        return found[start:]

    def topic_synonyms(
        self, setting: Setting, overrides: Mapping[str, str]
    ) -> tuple[ConfigValue, ...]:
        """Return what sets a topic setting, its own override first, as DescribeConfigs lists it."""
        inherited = self.broker_synonyms(setting.synonyms[0].name) if setting.synonyms else ()
        if setting.name not in overrides:
            return inherited
        own = ConfigValue(
            name=setting.name,
            value=setting.canonical(overrides[setting.name]),
            source=ConfigSource.TOPIC_CONFIG,
        )
        return (own, *inherited)

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
            return setting.canonical(overrides[name])
        return self.inherited_value(setting)

    def log_defaults(self) -> dict[str, str]:
        """Return the broker's defaults of every topic setting, by topic-level name, for the core.

        ``flush.messages`` and ``flush.ms`` are there only when a broker setting gives them: else
        durability decides.
        """
        values = {name: self.inherited_value(s) for name, s in topic_settings().items()}
        return {
            name: value
            for name, value in values.items()
            if value is not None and (name not in _BY_DURABILITY or self._is_set(name))
        }

    def core_settings(self) -> dict[str, str]:
        """Return the effective broker settings that are honoured, by Kafka name, for the core."""
        names = (n for n, s in broker_settings().items() if s.support is Support.HONOURED)
        values = {name: self.broker_value(name) for name in names}
        return {
            name: broker_settings()[name].canonical(value)
            for name, value in values.items()
            if value is not None
        }

    def _is_set(self, topic_name: str) -> bool:
        names = {synonym.name for synonym in topic_settings()[topic_name].synonyms}
        return any(names & layer.keys() for layer in (self.per_broker, self.cluster, self.static))

    def _found(self, names: tuple[str, ...]) -> Iterator[ConfigValue]:
        layers = (
            (self.per_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
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


def group_setting_source(setting: Setting) -> str | None:
    """Return the broker setting that a group setting inherits from."""
    assert setting.scope is Scope.GROUP
    return setting.synonyms[0].name if setting.synonyms else None


def _family(name: str) -> tuple[str, ...]:
    for setting in topic_settings().values():
        names = tuple(synonym.name for synonym in setting.synonyms)
        if name in names:
            return names
    return (name,)


def _multiplied(text: str, synonym: Synonym) -> str:
    if synonym.factor == 1:
        return settings(Scope.BROKER)[synonym.name].canonical(text)
    return str(int(text) * synonym.factor)
