"""Kafka's settings: one table of names, validated values, and the sources of values."""

from .effective import BrokerConfigs, canonical_overrides
from .files import SettingsFileError, parse_properties, read_settings
from .group_bounds import GROUP_BOUNDS, capped
from .layers import ConfigSource, ConfigValue, family_of
from .listeners import EMBEDDED_LISTENER, Listener, ListenerError, parse_listeners
from .rows import (
    ConfigRow,
    broker_rows,
    client_metrics_rows,
    cluster_rows,
    group_rows,
    topic_rows,
)
from .rules import SettingProblem
from .setting import (
    VALUE_TOO_LONG,
    ConfigType,
    Scope,
    Setting,
    Support,
    UpdateMode,
    is_too_long,
)
from .start import StartConfig
from .table import broker_settings, settings, topic_settings
from .topic_configs import TopicConfigs
from .validation import validate
from .validators import InvalidValueError

__all__ = [
    "EMBEDDED_LISTENER",
    "GROUP_BOUNDS",
    "VALUE_TOO_LONG",
    "BrokerConfigs",
    "ConfigRow",
    "ConfigSource",
    "ConfigType",
    "ConfigValue",
    "InvalidValueError",
    "Listener",
    "ListenerError",
    "Scope",
    "Setting",
    "SettingProblem",
    "SettingsFileError",
    "StartConfig",
    "Support",
    "TopicConfigs",
    "UpdateMode",
    "broker_rows",
    "broker_settings",
    "canonical_overrides",
    "capped",
    "client_metrics_rows",
    "cluster_rows",
    "family_of",
    "group_rows",
    "is_too_long",
    "parse_listeners",
    "parse_properties",
    "read_settings",
    "settings",
    "topic_rows",
    "topic_settings",
    "validate",
]
