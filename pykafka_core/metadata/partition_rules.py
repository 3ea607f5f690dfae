"""The rules that changes of partitions are judged by, as the image and the settings give them."""

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
    """Rules by topic; those of the topic asked for last are kept, for partitions are gone through topic by topic.

    Args:
        image: Has brokers, settings of topics and the feature's level.
        settings: Says where unclean elections are allowed; nowhere without them.
        brokers: As they will be, if not as in ``image``.
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
        """Rules for changes that an event makes: unclean elections where the topic's settings allow them."""
        if self._last is None or self._last[0] != topic.topic_id:
            self._last = topic.topic_id, self._made(topic)
        return self._last[1]

    def asked(self, topic: Topic, election: Election) -> Rules:
        """Rules for a change with an election of a kind that somebody asks for."""
        return self.of(topic)._replace(election=election)

    def allows_unclean(self, topic: Topic) -> bool:
        """Whether a replica that may lack records may lead rather than nobody."""
        if self._settings is None:
            return False
        own = self._image.configs.of(RESOURCE_TOPIC, topic.name)
        return self._settings.topic_value(UNCLEAN_ELECTION, own) == "true"

    def min_isr(self, topic: Topic) -> int:
        """``min.insync.replicas`` of the cluster or of this broker's settings, the larger one."""
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
    """A topic's ``min.insync.replicas`` where eligible leader replicas are kept: then no broker has one of its own."""
    setting = topic_settings()[MIN_ISR]
    for kind, name in ((RESOURCE_TOPIC, topic), (RESOURCE_BROKER, "")):
        text = image.configs.of(kind, name).get(MIN_ISR)
        usable = None if text is None else setting.usable(text)
        if usable is not None:
            return int(usable)
    assert setting.default is not None, "Kafka's default is 1"
    return int(setting.default)
