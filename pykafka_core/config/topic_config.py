"""A topic's own settings: what CreateTopics and the alter requests may set."""

from collections.abc import Mapping

from .broker_config import COMPACTION_MISSING
from .layers import ConfigLayers
from .setting import Support
from .table import topic_settings
from .validators import InvalidValueError


class InvalidTopicConfigError(ValueError):
    """A topic's settings cannot be as asked: INVALID_CONFIG, with the message as its text."""


def validate_topic_config(
    overrides: Mapping[str, str],
    *,
    layers: ConfigLayers,
    existing: Mapping[str, str] | None = None,
) -> None:
    """Check a topic's overrides as they would become.

    Args:
        overrides: All of them, not only the changes.
        layers: The broker's settings, for bounds that join two settings.
        existing: What the topic has already. A compacted topic of another broker stays alterable.

    Raises:
        InvalidTopicConfigError: With Kafka's text where Kafka refuses too.
    """
    for name, text in overrides.items():
        _check_one(name, text, unchanged=existing is not None and existing.get(name) == text)
    _check_compaction_lags(overrides, layers)


def _check_one(name: str, text: str, *, unchanged: bool) -> None:
    setting = topic_settings().get(name)
    if setting is None:
        raise InvalidTopicConfigError(f"Unknown topic config name: {name}")
    try:
        value = setting.parse(text)
    except InvalidValueError as error:
        raise InvalidTopicConfigError(str(error)) from None
    if unchanged:
        return
    if name == "cleanup.policy" and isinstance(value, tuple) and "compact" in value:
        reason = f"{COMPACTION_MISSING}; use cleanup.policy=delete"
        raise InvalidTopicConfigError(f"Invalid value {text} for configuration {name}: {reason}")
    if setting.support is Support.NOT_BUILT and setting.canonical(text) != setting.default:
        raise InvalidTopicConfigError(
            f"Invalid value {text} for configuration {name}: not built yet"
        )


def _check_compaction_lags(overrides: Mapping[str, str], layers: ConfigLayers) -> None:
    low = int(layers.topic_value("min.compaction.lag.ms", overrides) or 0)
    high = layers.topic_value("max.compaction.lag.ms", overrides)
    if high is not None and low > int(high):
        raise InvalidTopicConfigError(
            "conflict topic config setting "
            f"min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
