"""The topics of an image for consumer groups."""

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
        """The image's table of topics, which is replaced when a topic changes."""
        return self.topics.by_name

    def topic(self, name: str) -> GroupTopic | None:
        """Return the topic with this name, if it exists."""
        topic = self.topics.by_name.get(name)
        return None if topic is None else GroupTopic(name, topic.topic_id, len(topic.partitions))

    def matching(self, regex: str) -> frozenset[str]:
        """Return the topics whose full name matches a regular expression, including internal
        topics, as in Kafka.

        An invalid expression, which another broker may have stored, matches no topic.
        """
        try:
            matches = Pattern(regex).matches
        except ValueError:
            return frozenset()
        return frozenset(filter(matches, self.topics.by_name))
