"""The rules for partition changes, from the image and the settings."""

from collections.abc import Mapping
from typing import Final

from pykafka_core.config import BrokerConfigs, topic_settings
from pykafka_core.metadata.image.features import ELIGIBLE_LEADER_REPLICAS
from pykafka_core.metadata.image.image import Broker, MetadataImage, Topic
from pykafka_core.metadata.partition_change import Election, Rules
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


class PartitionRules:
    """Rules by topic. Those of the last topic are cached, because callers iterate topic by topic.

    Args:
        image: Brokers, settings of topics and feature levels.
        settings: Settings that allow unclean elections; without them none is allowed.
        brokers: Future state of the brokers, if it differs from ``image``.
    """

    def __init__(
        self,
        image: MetadataImage,
        settings: BrokerConfigs | None = None,
        brokers: Mapping[int, Broker] | None = None,
    ) -> None:
        self._image = image
        self._settings = settings
        self._brokers = image.brokers if brokers is None else brokers
        self._elr = image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        self._last: tuple[bytes, Rules] | None = None
        self._last_min_isr: tuple[bytes, int] | None = None

    def of(self, topic: Topic) -> Rules:
        """Return rules for changes by events; topic settings may allow unclean elections."""
        if self._last is None or self._last[0] != topic.topic_id:
            self._last = topic.topic_id, self._made(topic)
        return self._last[1]

    def asked(self, topic: Topic, election: Election) -> Rules:
        """Return rules for a change with a requested kind of election."""
        return self.of(topic)._replace(election=election)

    def allows_unclean(self, topic: Topic) -> bool:
        """Return whether a replica that may lack records can be elected if there is no other."""
        if self._settings is None:
            return False
        own = self._image.configs.of(RESOURCE_TOPIC, topic.name)
        return self._settings.topic_value(UNCLEAN_ELECTION, own) == "true"

    def min_isr(self, topic: Topic) -> int:
        """Return the larger ``min.insync.replicas`` of the cluster and this broker's settings."""
        if self._last_min_isr is None or self._last_min_isr[0] != topic.topic_id:
            known = min_isr(self._image, topic.name)
            self._last_min_isr = topic.topic_id, max(known, self.own_min_isr(topic))
        return self._last_min_isr[1]

    def own_min_isr(self, topic: Topic) -> int:
        """Return ``min.insync.replicas`` of this broker's settings, 1 without settings.

        The broker refuses records by it.
        """
        if self._settings is None:
            return 1
        own = self._image.configs.of(RESOURCE_TOPIC, topic.name)
        return int(self._settings.topic_value(MIN_ISR, own) or 1)

    def _made(self, topic: Topic) -> Rules:
        is_unclean = self.allows_unclean(topic)
        return Rules(
            brokers=self._brokers,
            min_isr=min_isr(self._image, topic.name) if self._elr else 1,
            elr=self._elr,
            election=Election.UNCLEAN if is_unclean else Election.ONLINE,
        )


def min_isr(image: MetadataImage, topic: str) -> int:
    """Return a topic's ``min.insync.replicas`` in the log; brokers do not override it with ELR."""
    setting = topic_settings()[MIN_ISR]
    for kind, name in ((RESOURCE_TOPIC, topic), (RESOURCE_BROKER, "")):
        text = image.configs.of(kind, name).get(MIN_ISR)
        usable = None if text is None else setting.usable(text)
        if usable is not None:
            return int(usable)
    assert setting.default is not None, "Kafka's default is 1"
    return int(setting.default)
