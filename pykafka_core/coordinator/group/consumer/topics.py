"""A consumer group's view of the topics: their ids and numbers of partitions."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

NO_METADATA_HASH = 0
"""Hash of a group without existing subscribed topics."""


class GroupTopic(NamedTuple):
    """A topic in the committed image."""

    name: str
    topic_id: bytes
    partitions_count: int


class TopicsView(Protocol):
    """The topics of one committed image. Immutable while an operation runs."""

    @property
    def version(self) -> object:
        """An object that is the same as long as no topic has changed."""

    def topic(self, name: str) -> GroupTopic | None:
        """Return the topic with this name, if it exists."""

    @property
    def offset(self) -> int:
        """Offset of the image in the metadata log."""

    def matching(self, regex: str) -> frozenset[str]:
        """Return the topics whose full name matches a regular expression, including internal
        topics; empty if the expression is invalid.
        """


def found_topics(view: TopicsView, names: Iterable[str]) -> Mapping[str, GroupTopic]:
    """Return those of the topics that exist, by name."""
    found = ((name, view.topic(name)) for name in names)
    return {name: topic for name, topic in found if topic is not None}


def metadata_hash(topics: Iterable[GroupTopic]) -> int:
    """Return a hash that changes when a topic is created, deleted, recreated or gets more
    partitions (KIP-1101).

    Only the group's coordinator compares it, so it need not be the hash that Kafka calculates. If
    Apache Kafka takes over a group, it calculates one more assignment.
    """
    ordered = sorted(topics)
    if not ordered:
        return NO_METADATA_HASH
    from hashlib import blake2b  # imported only when needed, because it loads OpenSSL

    digest = blake2b(digest_size=8)
    for topic in ordered:
        name = topic.name.encode("utf-8", "surrogatepass")
        for part in (name, topic.topic_id, topic.partitions_count.to_bytes(8, "big")):
            digest.update(len(part).to_bytes(4, "big") + part)
    return int.from_bytes(digest.digest(), "big", signed=True)
