"""The effective configs of a new topic, which CreateTopics returns since version 5."""

from collections.abc import Mapping

from pykafka_core.config import BrokerConfigs, ConfigSource, TopicConfigs, topic_settings
from pykafka_core.protocol.messages import CreateTopicsResponse

_Row = CreateTopicsResponse.CreatableTopicConfigs


class TopicRows:
    """The rows for the topics of one request.

    All topics inherit the same values, so these are looked up once and their rows are shared;
    otherwise a request for 1000 topics would resolve 35,000 configs.
    """

    def __init__(self, settings: BrokerConfigs) -> None:
        self._inherited = {
            row.name: _Row(
                name=row.name,
                value=row.value,
                read_only=row.read_only,
                config_source=int(row.source),
                is_sensitive=row.is_sensitive,
            )
            for row in TopicConfigs.rows({}, settings)
        }
        self._without_overrides = list(self._inherited.values())

    def rows(self, overrides: Mapping[str, str]) -> list[_Row]:
        """Return every config of a topic with ``overrides``, by name; do not change the rows."""
        if not overrides:
            return self._without_overrides
        return [
            _overridden(name, overrides[name]) if name in overrides else row
            for name, row in self._inherited.items()
        ]


def _overridden(name: str, text: str) -> _Row:
    value = topic_settings()[name].canonical(text)
    return _Row(name=name, value=value, config_source=int(ConfigSource.TOPIC_CONFIG))
