"""The topics of an image, as consumer groups see them."""

from typing import NamedTuple

from pykafka_core._core import Pattern
from pykafka_core.coordinator.group.consumer.topics import GroupTopic
from pykafka_core.metadata.image.image import Topics


class ImageTopics(NamedTuple):
    """A `TopicsView` of a committed image."""

    topics: Topics
    offset: int

    @property
    def version(self) -> object:
        """The image's table: another one when a topic changes."""
        return self.topics.by_name

    def topic(self, name: str) -> GroupTopic | None:
        """The topic of that name."""
        topic = self.topics.by_name.get(name)
        return None if topic is None else GroupTopic(name, topic.topic_id, len(topic.partitions))

    def matching(self, regex: str) -> frozenset[str]:
        """Names of topics that match a regular expression as a whole, internal ones too, as in Kafka.

        An invalid expression, which another broker has stored, matches none.
        """
        try:
            matches = Pattern(regex).matches
        except ValueError:
            return frozenset()
        return frozenset(filter(matches, self.topics.by_name))
