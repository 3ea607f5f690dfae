"""Kafka's settings: one table of names, checked values, and where a value comes from."""

from .broker_config import BrokerConfig, validate
from .files import SettingsFileError, parse_properties, read_settings
from .layers import ConfigLayers, ConfigSource, ConfigValue, canonical_overrides
from .listeners import Listener, ListenerError, parse_listeners
from .problems import InvalidSettingsError, SettingProblem
from .setting import ConfigType, Scope, Setting, Support, UpdateMode
from .table import broker_settings, settings, topic_settings
from .topic_config import InvalidTopicConfigError, validate_topic_config
from .validators import InvalidValueError

__all__ = [
    "BrokerConfig",
    "ConfigLayers",
    "ConfigSource",
    "ConfigType",
    "ConfigValue",
    "InvalidSettingsError",
    "InvalidTopicConfigError",
    "InvalidValueError",
    "Listener",
    "ListenerError",
    "Scope",
    "Setting",
    "SettingProblem",
    "SettingsFileError",
    "Support",
    "UpdateMode",
    "broker_settings",
    "canonical_overrides",
    "parse_listeners",
    "parse_properties",
    "read_settings",
    "settings",
    "topic_settings",
    "validate",
    "validate_topic_config",
]
