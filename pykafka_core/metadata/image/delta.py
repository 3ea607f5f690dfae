"""The step the core has to make when a draft is committed: a pure value, computed from changes."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, cast

from pykafka_core.metadata.image.draft import Changes
from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Broker, MetadataImage, Topic
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC

PIECE_MAX = 250
"""Topics and partitions that one step of the core may change: a few milliseconds' work."""


class Delta(NamedTuple):
    """One committed metadata step. ``None`` leaves a part as it was."""

    offset: int
    overrides: Mapping[str, Mapping[str, str]]
    """Settings of each of ``topics``, by name."""
    topics: tuple[Topic, ...] = ()
    """Created or changed."""
    partial: Mapping[bytes, tuple[int, ...]] = MappingProxyType({})
    """Of ``topics`` that existed: which of their partitions changed. The others are new, or changed whole."""
    deleted: tuple[bytes, ...] = ()
    brokers: tuple[Broker, ...] | None = None
    features: tuple[int, Mapping[str, int]] | None = None
    """Epoch, and the finalised levels that this version offers."""
    settings_changed: bool = False
    """Broker settings have to be resolved again."""

    def pieces(self) -> "Iterator[Delta]":
        """Steps that lead to the same together, in order: about `PIECE_MAX` topics and partitions each.

        A new topic stays whole, as nobody may see it with less partitions than it was created with; one that exists
        changes or grows in several pieces. Every record of a batch has an offset and changes one piece at most, so each
        piece has one of its own.
        """
        groups = [
            _Group(deleted=self.deleted[first : first + PIECE_MAX])
            for first in range(0, len(self.deleted), PIECE_MAX)
        ]
        groups += self._groups()
        if len(groups) < 2:
            yield self
            return
        last = len(groups) - 1
        for place, group in enumerate(groups):
            yield Delta(
                offset=self.offset - last + place,
                topics=group.topics,
                partial=group.partial,
                overrides={topic.name: self.overrides[topic.name] for topic in group.topics},
                deleted=group.deleted,
                brokers=None if place else self.brokers,
                features=None if place else self.features,
                settings_changed=self.settings_changed and not place,
            )

    def _groups(self) -> "Iterator[_Group]":
        topics: list[Topic] = []
        partial: dict[bytes, tuple[int, ...]] = {}
        size = 0
        for topic, changed in self._parts():
            topics.append(topic)
            if changed is not None:
                partial[topic.topic_id] = changed
            size += 1 + len(topic.partitions if changed is None else changed)
            if size >= PIECE_MAX:
                yield _Group(tuple(topics), partial)
                topics, partial, size = [], {}, 0
        if topics:
            yield _Group(tuple(topics), partial)

    def _parts(self) -> Iterator[tuple[Topic, tuple[int, ...] | None]]:
        """Topics with those of their partitions that one piece may change, None for all of a new one."""
        for topic in self.topics:
            changed = self.partial.get(topic.topic_id)
            if not changed:
                yield topic, changed
                continue
            for first in range(0, len(changed), PIECE_MAX):
                yield topic, changed[first : first + PIECE_MAX]


class _Group(NamedTuple):
    """What one piece changes."""

    topics: tuple[Topic, ...] = ()
    partial: Mapping[bytes, tuple[int, ...]] = MappingProxyType({})
    deleted: tuple[bytes, ...] = ()


class _Overrides(Mapping[str, Mapping[str, str]]):
    """Settings of topics by name, looked up when they are needed."""

    def __init__(self, image: MetadataImage, topics: Sequence[Topic]) -> None:
        self._configs = image.configs
        self._topics = topics

    def __getitem__(self, name: str) -> Mapping[str, str]:
        return self._configs.of(RESOURCE_TOPIC, name)

    def __iter__(self) -> Iterator[str]:
        return (topic.name for topic in self._topics)

    def __len__(self) -> int:
        return len(self._topics)


def delta_of(image: MetadataImage, changes: Changes, node_id: int) -> Delta:
    """What leads from the base of ``changes`` to ``image``.

    Args:
        image: The committed image, its offset set.
        changes: What its draft touched.
        node_id: This broker, whose settings count.
    """
    slices = delta_in_slices(image, changes, node_id)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return cast("Delta", end.value)


def delta_in_slices(
    image: MetadataImage, changes: Changes, node_id: int
) -> Generator[None, None, Delta]:
    """As `delta_of`, yielding after each topic."""
    changed = dict(changes.topics)
    settings_changed = False
    for resource in changes.configs:
        yield
        if resource.kind == RESOURCE_BROKER and resource.name in ("", str(node_id)):
            settings_changed = True
        topic = image.topics.by_name.get(resource.name) if resource.kind == RESOURCE_TOPIC else None
        if topic is not None:
            changed.setdefault(topic.topic_id, set())
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
        overrides=_Overrides(image, topics),
        deleted=tuple(changes.deleted_topics),
        brokers=live_brokers(image) if changes.brokers else None,
        features=offered_features(image) if changes.features else None,
        settings_changed=settings_changed,
    )


def whole(image: MetadataImage) -> Delta:
    """What leads from nothing to ``image``."""
    topics = tuple(image.topics.by_id.values())
    return Delta(
        offset=image.offset,
        topics=topics,
        overrides={topic.name: image.configs.of(RESOURCE_TOPIC, topic.name) for topic in topics},
        brokers=live_brokers(image),
        features=offered_features(image),
        settings_changed=True,
    )


def live_brokers(image: MetadataImage) -> tuple[Broker, ...]:
    """Brokers that clients may be told of, by id."""
    return tuple(
        image.brokers[node] for node in sorted(image.brokers) if not image.brokers[node].fenced
    )


def offered_features(image: MetadataImage) -> tuple[int, Mapping[str, int]]:
    """Finalised levels as ApiVersions may tell them, with their epoch.

    A directory of Apache Kafka may have features finalised that this version does not offer.
    """
    levels = {name: level for name, level in image.features.items() if name in SUPPORTED_FEATURES}
    return image.features_epoch, levels
