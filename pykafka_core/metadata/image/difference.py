"""The changes between two unrelated images, as when a snapshot is installed."""

from collections.abc import Generator

from pykafka_core.metadata.image.draft import Changes
from pykafka_core.metadata.image.image import MetadataImage, Topic


def difference(before: MetadataImage, after: MetadataImage) -> Generator[None, None, Changes]:
    """Return the changes from one image to another, as a draft would record them; in slices.

    A topic with another id was deleted and recreated, even if the name is the same.
    """
    changes = Changes()
    known = before.topics.by_id
    for topic_id, topic in known.items():
        yield
        if topic_id not in after.topics.by_id:
            changes.deleted_topics[topic_id] = topic
    for topic_id, topic in after.topics.by_id.items():
        yield
        earlier = known.get(topic_id)
        if earlier is None:
            changes.topics[topic_id] = None
        elif changed := _changed_partitions(earlier, topic):
            changes.topics[topic_id] = changed
    yield from _note_configs(changes, before, after)
    changes.brokers = before.brokers != after.brokers
    changes.client_quotas = before.client_quotas != after.client_quotas
    changes.features = (before.features, before.features_epoch) != (
        after.features,
        after.features_epoch,
    )
    return changes


def _changed_partitions(before: Topic, after: Topic) -> set[int]:
    """Return the changed and new partitions; partitions are never removed from a topic."""
    known = before.partitions
    return {index for index, one in after.partitions.items() if known.get(index) != one}


def _note_configs(
    changes: Changes, before: MetadataImage, after: MetadataImage
) -> Generator[None, None, None]:
    one, other = before.configs.by_resource, after.configs.by_resource
    for resource in {**one, **other}:
        yield
        if one.get(resource) != other.get(resource):
            changes.configs.add(resource)
