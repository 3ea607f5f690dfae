"""Settings as DescribeConfigs lists them: value, source and synonyms."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from .effective import BrokerConfigs
from .layers import ConfigSource, ConfigValue
from .setting import ConfigType, Scope, Setting
from .table import broker_settings, settings, topic_settings

_OWN_SOURCE = {
    Scope.TOPIC: ConfigSource.TOPIC_CONFIG,
    Scope.GROUP: ConfigSource.GROUP_CONFIG,
    Scope.CLIENT_METRICS: ConfigSource.CLIENT_METRICS_CONFIG,
}


class ConfigRow(NamedTuple):
    """One setting of one resource. A sensitive setting and its synonyms have no value."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: tuple[ConfigValue, ...]
    type: ConfigType
    documentation: str


def topic_rows(
    overrides: Mapping[str, str], broker: BrokerConfigs, names: Collection[str] = ()
) -> list[ConfigRow]:
    """Return every topic setting, or those of ``names``; an internal one only if it is
    overridden.
    """
    return [
        _row(setting, value, synonyms)
        for setting in _listed(topic_settings(), overrides, names)
        for own in [overrides.get(setting.name)]
        for value in [broker.inherited_value(setting) if own is None else own]
        for synonyms in [_with_own(setting, overrides, _inherited(setting, broker))]
    ]


def broker_rows(broker: BrokerConfigs, names: Collection[str] = ()) -> list[ConfigRow]:
    """Return every broker setting, or those of ``names``; an internal one only if it is set."""
    given = {**broker.static, **broker.cluster_default, **broker.broker}
    return [
        _row(setting, broker.broker_value(setting.name), broker.broker_synonyms(setting.name))
        for setting in _listed(broker_settings(), given, names)
    ]


def cluster_rows(broker: BrokerConfigs) -> list[ConfigRow]:
    """Return only the settings that are altered for all brokers."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [
        _row(broker_settings()[name], value, (ConfigValue(name=name, value=value, source=source),))
        for name, value in broker.cluster_default.items()
    ]


def group_rows(
    overrides: Mapping[str, str], broker: BrokerConfigs, names: Collection[str] = ()
) -> list[ConfigRow]:
    """Return every group setting, or those of ``names``; defaults are the broker's, as in Kafka
    since 4.3.
    """
    return [
        _row(setting, value, _with_own(setting, overrides, inherited))
        for setting in _named(settings(Scope.GROUP), names)
        for value in [overrides.get(setting.name) or broker.inherited_value(setting)]
        for inherited in [_inherited(setting, broker) or _own_default(setting)]
    ]


def client_metrics_rows(
    overrides: Mapping[str, str], names: Collection[str] = ()
) -> list[ConfigRow]:
    """Return every setting of a client-metrics subscription, or those of ``names``."""
    return [
        _row(setting, overrides.get(setting.name, setting.default), _with_own(setting, overrides))
        for setting in _named(settings(Scope.CLIENT_METRICS), names)
    ]


def _listed(
    table: Mapping[str, Setting], given: Mapping[str, str], names: Collection[str]
) -> Iterable[Setting]:
    return (s for s in _named(table, names) if not s.internal or s.name in given)


def _named(table: Mapping[str, Setting], names: Collection[str]) -> Iterable[Setting]:
    return table.values() if not names else (s for s in table.values() if s.name in names)


def _inherited(setting: Setting, broker: BrokerConfigs) -> tuple[ConfigValue, ...]:
    return broker.broker_synonyms(setting.synonyms[0].name) if setting.synonyms else ()


def _own_default(setting: Setting) -> tuple[ConfigValue, ...]:
    source = ConfigSource.DEFAULT_CONFIG
    return (ConfigValue(name=setting.name, value=setting.default, source=source),)


def _with_own(
    setting: Setting, overrides: Mapping[str, str], inherited: tuple[ConfigValue, ...] = ()
) -> tuple[ConfigValue, ...]:
    if setting.name not in overrides:
        return inherited
    value = setting.shown(overrides[setting.name])
    own = ConfigValue(name=setting.name, value=value, source=_OWN_SOURCE[setting.scope])
    return (own, *inherited)


def _row(setting: Setting, value: str | None, synonyms: tuple[ConfigValue, ...]) -> ConfigRow:
    return ConfigRow(
        name=setting.name,
        value=None if setting.sensitive or value is None else setting.shown(value),
        read_only=setting.read_only,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=setting.sensitive,
        synonyms=tuple(synonym.masked() for synonym in synonyms) if setting.sensitive else synonyms,
        type=setting.type,
        documentation=setting.documentation,
    )
