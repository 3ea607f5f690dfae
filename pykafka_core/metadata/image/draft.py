"""A proposed image, and the only place where an image changes.

Theory of operation. A `Draft` starts as a copy that shares every table with its base. It copies a
table before the first write to it, so a batch costs as much as the tables it changes, and the base
stays unchanged. `mutators.apply` is the only caller of its methods, for new records and for replay.
The draft also records *what* changed (`Changes`), from which `delta.py` computes the core's next
step. A draft whose records are not committed is dropped: there is no rollback.
"""

from collections.abc import MutableMapping
from typing import TypeVar

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image.cow_map import fork
from pykafka_core.metadata.image.image import Configs, MetadataImage, Partition, Topic, Topics
from pykafka_core.types import ConfigResource

_K = TypeVar("_K")
_V = TypeVar("_V")

_SETTINGS_COPIED_MAX = 256
"""Resources with more settings are forked. Most have only a few, for which a dict is faster."""


class Changes:
    """The changes of a draft since its base.

    Attributes:
        topics: Ids of created or changed topics, in order, with their changed partitions (None for
            all); without topics that were deleted again.
        deleted_topics: Deleted topics of the base, in their last state.
    """

    __slots__ = "brokers", "client_quotas", "configs", "deleted_topics", "features", "topics"

    def __init__(self) -> None:
        self.topics: dict[bytes, set[int] | None] = {}
        self.deleted_topics: dict[bytes, Topic] = {}
        self.configs: set[ConfigResource] = set()
        self.brokers = False
        self.client_quotas = False
        self.features = False


class Draft:
    """An image under construction.

    Args:
        base: A committed image, or that of an earlier draft; it is not changed.
    """

    def __init__(self, base: MetadataImage) -> None:
        self._base = base
        self._owned: set[str] = set()
        self._owned_topics: dict[bytes, Topic] = {}
        self._owned_configs: set[ConfigResource] = set()
        self.partitions: dict[Partition, Partition] = {}
        """Partitions that this draft created; equal ones, as in a large topic, share one object."""
        self.changes = Changes()
        self.image = _shallow_copy(base)

    def own(self, name: str, table: dict[_K, _V]) -> dict[_K, _V]:
        """Return ``table``, or on the first call for ``name`` a copy, which may be changed."""
        if name in self._owned:
            return table
        self._owned.add(name)
        return dict(table)

    def own_topics(self) -> Topics:
        """Return the topic tables, which may be changed; the topics in them may not."""
        image = self.image
        if "topics" not in self._owned:
            self._owned.add("topics")
            image.topics = Topics(fork(image.topics.by_id), fork(image.topics.by_name))
        return image.topics

    def begin_topic(self, topic: Topic) -> None:
        """Add a new topic, which may be changed."""
        tables = self.own_topics()
        tables.by_id[topic.topic_id] = tables.by_name[topic.name] = topic
        self._owned_topics[topic.topic_id] = topic
        self.changes.topics[topic.topic_id] = None

    def end_topic(self, topic_id: bytes, what: str) -> Topic:
        """Remove a topic and return it."""
        tables = self.own_topics()
        topic = tables.by_id.pop(topic_id, None)
        if topic is None:
            raise MetadataError(f"{what} names topic id {topic_id.hex()}, which does not exist")
        del tables.by_name[topic.name]
        self._owned_topics.pop(topic_id, None)
        self.changes.topics.pop(topic_id, None)
        if topic_id in self._base.topics.by_id:
            self.changes.deleted_topics[topic_id] = topic
        return topic

    def own_topic(self, topic_id: bytes, what: str, index: int | None = None) -> Topic:
        """Return a topic that may be changed; record a change of partition ``index``, or of all."""
        topic = self._owned_topics.get(topic_id) or self._copy_topic(topic_id, what)
        changed = self.changes.topics
        if index is None:
            changed[topic_id] = None
        elif topic_id not in changed:
            changed[topic_id] = {index}
        elif (indexes := changed[topic_id]) is not None:
            indexes.add(index)
        return topic

    def _copy_topic(self, topic_id: bytes, what: str) -> Topic:
        tables = self.own_topics()
        found = tables.by_id.get(topic_id)
        if found is None:
            raise MetadataError(f"{what} names topic id {topic_id.hex()}, which does not exist")
        topic = Topic(found.name, topic_id, fork(found.partitions))
        self._owned_topics[topic_id] = tables.by_id[topic_id] = tables.by_name[topic.name] = topic
        return topic

    def own_configs(self) -> MutableMapping[ConfigResource, MutableMapping[str, str]]:
        """Return the table of resources, which may be changed; the settings in it may not."""
        if "configs" not in self._owned:
            self._owned.add("configs")
            self.image.configs = Configs(fork(self.image.configs.by_resource))
        return self.image.configs.by_resource

    def own_config(self, resource: ConfigResource) -> MutableMapping[str, str]:
        """Return a resource's settings, which may be changed, and record the change."""
        table = self.own_configs()
        if resource not in self._owned_configs:
            self._owned_configs.add(resource)
            held = table.get(resource, {})
            table[resource] = fork(held) if len(held) > _SETTINGS_COPIED_MAX else dict(held)
        self.changes.configs.add(resource)
        return table[resource]

    def forget_config(self, resource: ConfigResource) -> None:
        """Remove all settings of a resource."""
        if self.own_configs().pop(resource, None) is not None:
            self.changes.configs.add(resource)
        self._owned_configs.discard(resource)


def _shallow_copy(base: MetadataImage) -> MetadataImage:
    copy = MetadataImage.__new__(MetadataImage)
    for name in MetadataImage.__slots__:
        setattr(copy, name, getattr(base, name))
    return copy
