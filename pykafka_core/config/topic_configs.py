"""A topic's own settings: validation."""

from collections.abc import Mapping

from pykafka_core.errors import InvalidConfigError

from .effective import BrokerConfigs
from .setting import VALUE_TOO_LONG, Support, is_too_long
from .table import topic_settings
from .validators import InvalidValueError


class TopicConfigs:
    """Validates a topic's overrides."""

    @staticmethod
    def validate(
        overrides: Mapping[str, str],
        broker: BrokerConfigs,
        existing: Mapping[str, str] | None = None,
    ) -> None:
        """Check a topic's overrides as they would be after a change.

        Args:
            overrides: All of them, not only the changes.
            broker: The broker's settings, for rules that combine settings.
            existing: The topic's current overrides: a stored setting that is not supported is kept.

        Raises:
            InvalidConfigError: With Kafka's text where Kafka also rejects it.
        """
        for name, text in overrides.items():
            if existing is None or existing.get(name) != text:
                _check(name, text)
        _check_compaction_lags(overrides, broker)


def _check(name: str, text: str) -> None:
    setting = topic_settings().get(name)
    if setting is None:
        raise InvalidConfigError(f"Unknown topic config name: {name}")
    if is_too_long(text):
        raise InvalidConfigError(VALUE_TOO_LONG)
    try:
        setting.parse(text)
    except InvalidValueError as error:
        raise InvalidConfigError(str(error)) from None
    if setting.support is Support.NOT_BUILT and setting.canonical(text) != setting.default:
        raise InvalidConfigError(
            f"Invalid value {text} for configuration {name}: it is not built yet"
        )


def _check_compaction_lags(overrides: Mapping[str, str], broker: BrokerConfigs) -> None:
    low = int(broker.topic_value("min.compaction.lag.ms", overrides) or 0)
    high = broker.topic_value("max.compaction.lag.ms", overrides)
    if high is not None and low > int(high):
        raise InvalidConfigError(
            "conflict topic config setting "
            f"min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
