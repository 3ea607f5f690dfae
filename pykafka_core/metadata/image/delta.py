"""The core's next step when a draft is committed: a pure value, computed from changes."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import NamedTuple

from pykafka_core.metadata.image.draft import Changes
from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Broker, MetadataImage, QuotaKey, Topic
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC

PIECE_MAX = 250
"""Maximum number of topics and partitions in one step of the core: a few milliseconds of work."""


class Delta(NamedTuple):
    """One committed metadata step. ``None`` means that a part is unchanged."""

    offset: int
    overrides: Mapping[str, Mapping[str, str]]
    """Settings of ``topics``, by name."""
    topics: tuple[Topic, ...] = ()
    """Topics that were created or changed, or whose settings changed."""
    partial: Mapping[bytes, tuple[int, ...]] = MappingProxyType({})
    """Changed partitions of existing ``topics``. Other topics are new, or changed as a whole."""
    reconfigured: AbstractSet[bytes] = frozenset()
    """Those of ``topics`` in ``partial`` whose settings changed, which affects all partitions."""
    unfinished: AbstractSet[bytes] = frozenset()
    """Those of ``topics`` that later pieces continue: new ones, or ones with changed settings."""
    deleted: Mapping[bytes, int] = MappingProxyType({})
    """Deleted topics, with their number of partitions."""
    brokers: tuple[Broker, ...] | None = None
    features: tuple[int, Mapping[str, int]] | None = None
    """Epoch, and the finalised levels that this version supports."""
    client_quotas: Mapping[QuotaKey, float] | None = None
    """All client quotas."""
    settings_changed: bool = False
    """Whether broker settings must be resolved again."""
    piece: int = 0
    """Number of this piece within a step."""

    def pieces(self) -> "Iterator[Delta]":
        """Split the step into consecutive pieces of about `PIECE_MAX` topics and partitions each.

        Changes of an existing topic may be split. Its deletion is not, because the core closes its
        partitions on other threads. A new topic is unfinished until its last piece, so that it is
        never visible with fewer partitions than it was created with.
        """
        place, parts, size = 0, list[_Part](), 0
        for part in self._parts():
            parts.append(part)
            size += part.size
            if size >= PIECE_MAX:
                yield self._piece(place, parts)
                place, parts, size = place + 1, [], 0
        if parts or not place:
            yield self._piece(place, parts)

    def _piece(self, place: int, parts: "Sequence[_Part]") -> "Delta":
        topics = tuple(part.topic for part in parts if part.topic is not None)
        return Delta(
            offset=self.offset,
            piece=place,
            topics=topics,
            partial={part.topic_id: part.indexes for part in parts if part.indexes is not None},
            unfinished={part.topic_id for part in parts if part.is_unfinished},
            overrides={topic.name: self.overrides[topic.name] for topic in topics},
            deleted={
                part.topic_id: self.deleted[part.topic_id] for part in parts if part.topic is None
            },
            brokers=None if place else self.brokers,
            features=None if place else self.features,
            client_quotas=None if place else self.client_quotas,
            settings_changed=self.settings_changed and not place,
        )

    def _parts(self) -> "Iterator[_Part]":
        for topic_id, size in self.deleted.items():
            yield _Part(topic_id, min(size, PIECE_MAX))
        for topic in self.topics:
            indexes = self.partial.get(topic.topic_id)
            if indexes is not None:
                yield from self._parts_of_known(topic, indexes)
            elif len(topic.partitions) <= PIECE_MAX:
                yield _Part(topic.topic_id, 1 + len(topic.partitions), topic)
            else:
                yield from _parts_of_large(topic)

    def _parts_of_known(self, topic: Topic, indexes: tuple[int, ...]) -> "Iterator[_Part]":
        if topic.topic_id in self.reconfigured:
            if len(topic.partitions) > PIECE_MAX:
                yield from _parts_of_large(topic)
                return
            yield _Part(topic.topic_id, 1 + len(topic.partitions), topic, ())
        for some in _chunks(indexes):
            yield _Part(topic.topic_id, 1 + len(some), topic, some)


class _Part(NamedTuple):
    """One piece's change of one topic. ``topic`` is None if it is deleted."""

    topic_id: bytes
    size: int
    """Number of topics and partitions that count towards `PIECE_MAX`."""
    topic: Topic | None = None
    indexes: tuple[int, ...] | None = None
    is_unfinished: bool = False


def _parts_of_large(topic: Topic) -> Iterator[_Part]:
    end = len(topic.partitions)
    for some in _chunks(tuple(sorted(topic.partitions))):
        end -= len(some)
        yield _Part(topic.topic_id, 1 + len(some), topic, some, is_unfinished=end > 0)


def _chunks(indexes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for first in range(0, len(indexes), PIECE_MAX):
        yield indexes[first : first + PIECE_MAX]


class _Overrides(Mapping[str, Mapping[str, str]]):
    """Settings of topics by name, looked up on access."""

    def __init__(self, image: MetadataImage, topics: Sequence[Topic]) -> None:
        self._configs = image.configs
        self._topics = topics

    def __getitem__(self, name: str) -> Mapping[str, str]:
        return self._configs.of(RESOURCE_TOPIC, name)

    def __iter__(self) -> Iterator[str]:
        return (topic.name for topic in self._topics)

    def __len__(self) -> int:
        return len(self._topics)


def delta_in_slices(
    image: MetadataImage, changes: Changes, node_id: int
) -> Generator[None, None, Delta]:
    """Return the step from the base of ``changes`` to ``image``; yield after each resource and
    topic.

    Args:
        image: The image with the changes: proposed, or committed with its offset.
        changes: The changes of its draft.
        node_id: This broker, whose settings are included.
    """
    changed = dict(changes.topics)
    reconfigured: set[bytes] = set()
    settings_changed = False
    for resource in changes.configs:
        yield
        if resource.kind == RESOURCE_BROKER and resource.name in ("", str(node_id)):
            settings_changed = True
        topic = image.topics.by_name.get(resource.name) if resource.kind == RESOURCE_TOPIC else None
        if topic is not None:
            changed.setdefault(topic.topic_id, set())
            reconfigured.add(topic.topic_id)
    topics: list[Topic] = []
    partial: dict[bytes, tuple[int, ...]] = {}
    for topic_id, indexes in changed.items():
        yield
        topics.append(image.topics.by_id[topic_id])
        if indexes is not None:
            partial[topic_id] = tuple(sorted(indexes))
    return Delta(
        offset=image.offset,
        topics=tuple(topics),
        partial=partial,
        reconfigured=reconfigured,
        overrides=_Overrides(image, topics),
        deleted={
            topic_id: len(topic.partitions) for topic_id, topic in changes.deleted_topics.items()
        },
        brokers=registered_brokers(image) if changes.brokers else None,
        features=offered_features(image) if changes.features else None,
        client_quotas=image.client_quotas if changes.client_quotas else None,
        settings_changed=settings_changed,
    )


def with_all_topics(delta: Delta, image: MetadataImage) -> Generator[None, None, Delta]:
    """Add all topics to ``delta``, because inherited defaults changed; in slices."""
    named = {topic.topic_id for topic in delta.topics}
    topics, partial = list(delta.topics), dict(delta.partial)
    for topic_id, topic in image.topics.by_id.items():
        yield
        if topic_id not in named:
            topics.append(topic)
            partial[topic_id] = ()
    return delta._replace(
        topics=tuple(topics),
        partial=partial,
        reconfigured=partial.keys(),
        overrides=_Overrides(image, topics),
    )


def whole(image: MetadataImage) -> Delta:
    """Return the step from an empty image to ``image``."""
    topics = tuple(image.topics.by_id.values())
    return Delta(
        offset=image.offset,
        topics=topics,
        overrides={topic.name: image.configs.of(RESOURCE_TOPIC, topic.name) for topic in topics},
        brokers=registered_brokers(image),
        features=offered_features(image),
        client_quotas=image.client_quotas,
        settings_changed=True,
    )


def registered_brokers(image: MetadataImage) -> tuple[Broker, ...]:
    """Return all brokers by id, including fenced ones."""
    return tuple(image.brokers[node] for node in sorted(image.brokers))


def offered_features(image: MetadataImage) -> tuple[int, Mapping[str, int]]:
    """Return the finalised levels for ApiVersions, with their epoch.

    A directory from Apache Kafka may have finalised features that this version does not support.
    """
    levels = {name: level for name, level in image.features.items() if name in SUPPORTED_FEATURES}
    return image.features_epoch, levels
