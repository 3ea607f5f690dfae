"""A proposed image, the only place where an image changes.

Theory of operation. A `Draft` begins as a copy that shares every table with its base; it copies a
table the first time it writes to it, so a batch costs the tables it touches and the base stays as
it was. `mutators.apply` is the only caller of its methods, for new records as for replay. The draft
also notes *what* it touched (`Changes`), from which `delta.py` computes the step that the core has to make.
A draft whose records are not committed is dropped: there is no rollback.
"""

from collections.abc import MutableMapping
from typing import TypeVar

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image.fork_map import fork
from pykafka_core.metadata.image.image import Configs, MetadataImage, Partition, Topic, Topics
from pykafka_core.types import ConfigResource

_K = TypeVar("_K")
_V = TypeVar("_V")

_SETTINGS_COPIED_MAX = 256
"""Resources with more settings are forked: nearly all have a few, which a dict reads faster."""


class Changes:
    """What a draft touched since its base.

    Attributes:
        topics: Ids of topics made or changed, in order, and which of their partitions, None for
            all; not those deleted again.
        deleted_topics: Topics of the base that are gone, as they were.
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
    """An image in the making.

    Args:
        base: A committed image, or that of an earlier draft; it is not changed.
    """

    def __init__(self, base: MetadataImage) -> None:
        self._base = base
        self._owned: set[str] = set()
        self._owned_topics: dict[bytes, Topic] = {}
        self._owned_configs: set[ConfigResource] = set()
        self.partitions: dict[Partition, Partition] = {}
        """Those that this draft made: equal ones, as of a large topic, are one object."""
        self.changes = Changes()
        self.image = _shallow_copy(base)

    def own(self, name: str, table: dict[_K, _V]) -> dict[_K, _V]:
        """``table``, or on the first call for ``name`` a copy of it: free to be changed."""
        if name in self._owned:
            return table
        self._owned.add(name)
        return dict(table)

    def own_topics(self) -> Topics:
        """The topic tables, free to be changed; the topics in them are not."""
        image = self.image
        if "topics" not in self._owned:
            self._owned.add("topics")
            image.topics = Topics(fork(image.topics.by_id), fork(image.topics.by_name))
        return image.topics

    def begin_topic(self, topic: Topic) -> None:
        """Take in a topic that was just made, and is free to be changed."""
        tables = self.own_topics()
        tables.by_id[topic.topic_id] = tables.by_name[topic.name] = topic
        self._owned_topics[topic.topic_id] = topic
        self.changes.topics[topic.topic_id] = None

    def end_topic(self, topic_id: bytes, what: str) -> Topic:
        """Drop a topic; what it was."""
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
        """The topic of an id, free to be changed, and noted as changed: its partition ``index``, or all of it."""
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
        """The table of resources, free to be changed; the settings in it are not."""
        if "configs" not in self._owned:
            self._owned.add("configs")
            self.image.configs = Configs(fork(self.image.configs.by_resource))
        return self.image.configs.by_resource

    def own_config(self, resource: ConfigResource) -> MutableMapping[str, str]:
        """A resource's settings, free to be changed, and noted as changed."""
        table = self.own_configs()
        if resource not in self._owned_configs:
            self._owned_configs.add(resource)
            held = table.get(resource, {})
            table[resource] = fork(held) if len(held) > _SETTINGS_COPIED_MAX else dict(held)
        self.changes.configs.add(resource)
        return table[resource]

    def forget_config(self, resource: ConfigResource) -> None:
        """Drop all settings of a resource."""
        if self.own_configs().pop(resource, None) is not None:
            self.changes.configs.add(resource)
        self._owned_configs.discard(resource)


def _shallow_copy(base: MetadataImage) -> MetadataImage:
    copy = MetadataImage.__new__(MetadataImage)
    for name in MetadataImage.__slots__:
        setattr(copy, name, getattr(base, name))
    return copy
