"""What a consumer group sees of topics: how many partitions each has."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

NO_METADATA_HASH = 0
"""Of a group that is subscribed to nothing that exists."""


class GroupTopic(NamedTuple):
    """One topic."""

    name: str
    topic_id: bytes
    partitions_count: int


class TopicsView(Protocol):
    """The topics of one committed image. It does not change while an operation runs."""

    @property
    def version(self) -> object:
        """The same object as long as no topic has changed."""

    def topic(self, name: str) -> GroupTopic | None:
        """The topic of that name."""

    @property
    def offset(self) -> int:
        """Of the image in the metadata log."""

    def matching(self, regex: str) -> frozenset[str]:
        """Names of topics that match a regular expression as a whole; none of the internal ones, nor if it is none."""


def found_topics(view: TopicsView, names: Iterable[str]) -> Mapping[str, GroupTopic]:
    """Those of the named topics that exist, by name."""
    found = ((name, view.topic(name)) for name in names)
    return {name: topic for name, topic in found if topic is not None}


def metadata_hash(topics: Iterable[GroupTopic]) -> int:
    """Return a number that changes when a topic comes, goes, is made again or grows (KIP-1101).

    Only its coordinator compares it; so it need not be the number that Kafka would calculate. A Kafka that takes over
    a group would assign its partitions once more.
    """
    ordered = sorted(topics)
    if not ordered:
        return NO_METADATA_HASH
    from hashlib import blake2b  # OpenSSL comes with it: not before a group needs it

    digest = blake2b(digest_size=8)
    for topic in ordered:
        name = topic.name.encode("utf-8", "surrogatepass")
        for part in (name, topic.topic_id, topic.partitions_count.to_bytes(8, "big")):
            digest.update(len(part).to_bytes(4, "big") + part)
    return int.from_bytes(digest.digest(), "big", signed=True)
