"""The step the core has to make when a draft is committed: a pure value, computed from changes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pykafka_core.metadata.image.draft import Changes
from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Broker, MetadataImage, Topic
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC


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
    """Broker settings have to be resolved anew."""


def delta_of(image: MetadataImage, changes: Changes, node_id: int) -> Delta:
    """What leads from the base of ``changes`` to ``image``.

    Args:
        image: The committed image, its offset set.
        changes: What its draft touched.
        node_id: This broker, whose settings count.
    """
    changed = _changed_topics(image, changes)
    topics = tuple(image.topics.by_id[topic_id] for topic_id in changed)
    return Delta(
        offset=image.offset,
        topics=topics,
        partial={
            topic_id: tuple(sorted(indexes))
            for topic_id, indexes in changed.items()
            if indexes is not None
        },
        overrides={topic.name: image.configs.of(RESOURCE_TOPIC, topic.name) for topic in topics},
        deleted=tuple(changes.deleted_topics),
        brokers=live_brokers(image) if changes.brokers else None,
        features=offered_features(image) if changes.features else None,
        settings_changed=any(
            resource.kind == RESOURCE_BROKER and resource.name in ("", str(node_id))
            for resource in changes.configs
        ),
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


def _changed_topics(image: MetadataImage, changes: Changes) -> dict[bytes, set[int] | None]:
    """Ids of the topics that changed, and which of their partitions; None for all."""
    changed = dict(changes.topics)
    for resource in changes.configs:
        topic = image.topics.by_name.get(resource.name) if resource.kind == RESOURCE_TOPIC else None
        if topic is not None:
            changed.setdefault(topic.topic_id, set())
    return changed
