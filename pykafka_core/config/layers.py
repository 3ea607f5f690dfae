"""The sources of a setting's value: altered values, values given at the start, and defaults.

A broker setting is looked up in five layers: altered for this broker, altered for the whole
cluster, given at the start, this broker's default, and the table's default. A topic setting is its
own override, or the first of its broker synonyms that is set: ``retention.ms`` uses
``log.retention.ms``, ``log.retention.minutes`` and ``log.retention.hours``.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from .setting import Setting, Synonym
from .table import broker_settings, topic_settings
from .validators import Range, Value

Int = int  # in `Layers` the name is a method
NOTHING: Mapping[str, str] = MappingProxyType({})


class ConfigSource(IntEnum):
    """Source of a value; the numbers are those of DescribeConfigs."""

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
    """A value, the name under which it was set, and its source."""

    name: str
    value: str | None
    source: ConfigSource

    def masked(self) -> "ConfigValue":
        """Return a copy without the value."""
        return ConfigValue(name=self.name, value=None, source=self.source)


class Layers:
    """A broker's settings by layer, as text by Kafka name; each value is valid for its row.

    Args:
        static: Given at the start.
        cluster_default: Altered for all brokers (ConfigRecords of the empty broker name).
        broker: Altered for this broker (ConfigRecords of its id).
        defaults: This broker's defaults, which replace the table's.
    """

    __slots__ = "_typed_values", "broker", "cluster_default", "defaults", "static"

    def __init__(
        self,
        static: Mapping[str, str],
        cluster_default: Mapping[str, str] = NOTHING,
        broker: Mapping[str, str] = NOTHING,
        defaults: Mapping[str, str] = NOTHING,
    ) -> None:
        self.static = static
        self.defaults = defaults
        self.cluster_default = cluster_default
        self.broker = broker
        self._typed_values: dict[str, Value] = {}

    def int(self, name: str) -> Int:
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

    def items(self, name: str) -> tuple[str, ...]:
        """Return the effective items of a broker setting that is a list; empty when it is null."""
        text = self.string(name)
        return tuple(text.split(",")) if text else ()

    def is_altered(self, name: str) -> bool:
        """Return whether a broker setting was altered while a broker ran."""
        return name in self.broker or name in self.cluster_default

    def broker_value(self, name: str) -> str | None:
        """Return the effective text of a broker setting, ``None`` when it is null."""
        return next((found.value for found in self._found((name,))), None)

    def broker_synonyms(self, name: str) -> tuple[ConfigValue, ...]:
        """Return the values of a broker setting, most specific first, as DescribeConfigs lists
        them.

        Synonymous settings (``log.retention.ms`` and ``.hours``) are listed together, from the
        requested name on.
        """
        found = tuple(filter(_is_set_or_a_default_of_kafkas, self._found(family_of(name))))
        start = next((i for i, value in enumerate(found) if value.name == name), len(found))
        return found[start:]

    def inherited_value(self, setting: Setting) -> str | None:
        """Return the value of a topic or group setting without an override.

        Broker settings may have values below the minimum of the topic setting, with the meaning of
        the minimum: any negative retention is unlimited, a negative flush interval is 0.
        """
        number = self.inherited_number(setting)
        if number is None:
            text = self._inherited(setting)[0]
            return setting.default if text is None else text
        bounds = setting.validator
        if not isinstance(bounds, Range) or str(number) == bounds.extra:
            return str(number)
        return str(max(number, int(bounds.low)))

    def inherited_number(self, setting: Setting) -> Int | None:
        """Return an inherited integer in the topic setting's unit; it may be out of bounds."""
        text, synonym = self._inherited(setting)
        if text is None or synonym is None:
            return None
        value = broker_settings()[synonym.name].parse(text)
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value * synonym.factor

    def topic_value(self, name: str, overrides: Mapping[str, str]) -> str | None:
        """Return the effective text of a topic setting; an invalid override is ignored."""
        setting = topic_settings()[name]
        own = setting.usable(overrides[name]) if name in overrides else None
        return self.inherited_value(setting) if own is None else own

    def _inherited(self, setting: Setting) -> tuple[str | None, Synonym | None]:
        """Return the canonical text of the first synonym that is set."""
        for synonym in setting.synonyms:
            text = self.broker_value(synonym.name)
            if text is not None:
                return broker_settings()[synonym.name].canonical(text), synonym
        return None, None

    def _typed(self, name: str) -> Value:
        """Return the parsed value; cached, because handlers need it for each request."""
        value = self._typed_values.get(name)
        if value is None:
            text = self.broker_value(name)
            assert text is not None, f"{name} has a default"
            value = self._typed_values[name] = broker_settings()[name].parse(text)
        return value

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
            default = self._default(name)
            if default is not None:
                yield ConfigValue(name=name, value=default, source=ConfigSource.DEFAULT_CONFIG)

    def _default(self, name: str) -> str | None:
        setting = broker_settings().get(name)
        return self.defaults.get(name, None if setting is None else setting.default)


def _is_set_or_a_default_of_kafkas(value: ConfigValue) -> bool:
    """Return False for a default that exists only here, for a setting that Kafka requires: it is
    not a synonym.
    """
    return value.source != ConfigSource.DEFAULT_CONFIG or not broker_settings()[value.name].required


def family_of(name: str) -> tuple[str, ...]:
    """Return synonymous broker settings, most specific first: ``name`` and its synonyms."""
    return _families().get(name, (name,))


@cache
def _families() -> Mapping[str, tuple[str, ...]]:
    """Return the groups of synonymous broker settings, by each of their names."""
    synonyms = (setting.synonyms for setting in topic_settings().values())
    families = (tuple(synonym.name for synonym in family) for family in synonyms)
    return {name: family for family in families for name in family}
