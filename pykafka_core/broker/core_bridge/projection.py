"""Converts a metadata delta to a step of the core's image, from which Rust handles requests."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pykafka_core.broker.core_bridge.core_types import CoreTypes
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.config import BrokerConfigs, canonical_overrides, topic_settings
from pykafka_core.handlers.outcome import Work
from pykafka_core.handlers.registry import API_VERSIONS
from pykafka_core.metadata.directories import lost_by
from pykafka_core.metadata.image.delta import Delta
from pykafka_core.metadata.image.features import KRAFT_VERSION, SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Broker, MetadataImage, Partition, Topic
from pykafka_core.quorum.quorum import BATCH_BYTES_MAX
from pykafka_core.types import INTERNAL_TOPICS, METADATA_TOPIC, METADATA_TOPIC_ID, RESOURCE_BROKER

_log = GuardedLogger(__name__)

if TYPE_CHECKING:
    from pykafka_core._core import BrokerEndpoint, ImageDelta, PartitionImage, TopicImage


class Projection:
    """Creates deltas with the classes of one core.

    Args:
        types: The classes.
        node_id: This broker.
        given: The settings at the start. A node that is only a controller has no partitions,
            whatever the image assigns to its id, so its core gets no topics.
        kraft_version: Returns the kraft.version of the metadata quorum, which the image does not
            contain.
    """

    def __init__(
        self,
        types: CoreTypes,
        node_id: int,
        given: BrokerConfigs,
        kraft_version: Callable[[], int] = lambda: 0,
    ) -> None:
        self._types = types
        self._node_id = node_id
        self._given = given
        self._kraft_version = kraft_version
        self._told_kraft_version = 0

    @property
    def has_new_kraft_version(self) -> bool:
        """Whether the quorum's ``kraft.version`` differs from the one in the core."""
        return self._kraft_version() != self._told_kraft_version

    def settings(self, image: MetadataImage) -> BrokerConfigs:
        """Return the broker's settings with the changes in ``image``."""
        return self._given.with_dynamic(
            cluster_default=image.configs.of(RESOURCE_BROKER, ""),
            broker=image.configs.of(RESOURCE_BROKER, str(self._node_id)),
        )

    def report_ignored(self, delta: Delta, settings: BrokerConfigs) -> Work[None]:
        """Log altered settings of a committed step that cannot be used: those of other versions, or
        only of Kafka.
        """
        if delta.settings_changed:
            for problem in settings.ignored:
                _log.warning("an altered broker setting is ignored: %s", problem)
        for topic, overrides in delta.overrides.items():
            yield
            for name in overrides.keys() - canonical_overrides(overrides).keys():
                value = overrides[name]
                _log.warning("topic %s: %s=%r cannot be used and is ignored", topic, name, value)

    def whole(self, delta: Delta, settings: BrokerConfigs) -> "ImageDelta":
        """Return the step to a loaded image, including the parts that never change afterwards."""
        return self._delta(
            delta, settings, api_versions=API_VERSIONS, supported_features=SUPPORTED_FEATURES
        )

    def settings_of(
        self, delta: Delta, deleted: tuple[bytes, ...], settings: BrokerConfigs
    ) -> "ImageDelta | None":
        """Return the part of a step that a core may reject, without ``deleted`` topics; None if
        there is none.
        """
        topics = [
            self._types.TopicImage(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[],
                overrides=canonical_overrides(overrides),
            )
            for topic in delta.topics
            if (overrides := delta.overrides[topic.name])
        ]
        changed = delta.settings_changed
        if not topics and not changed:
            return None
        return self._types.ImageDelta(
            metadata_offset=delta.offset,
            topics=topics,
            deleted=deleted,
            log_defaults=settings.log_defaults() if changed else None,
            broker_settings=settings.broker_settings() if changed else None,
        )

    def step(self, delta: Delta, settings: BrokerConfigs) -> "ImageDelta":
        """Return one committed step."""
        return self._delta(delta, settings, api_versions=None, supported_features=None)

    def _delta(
        self,
        delta: Delta,
        settings: BrokerConfigs,
        *,
        api_versions: Mapping[int, tuple[int, int]] | None,
        supported_features: Mapping[str, tuple[int, int]] | None,
    ) -> "ImageDelta":
        changed = delta.settings_changed
        partitions = _Partitions(self._types)
        features = delta.features
        if features is not None:
            level = self._told_kraft_version = self._kraft_version()
            own = {KRAFT_VERSION: level} if level else {}
            features = features[0], {**features[1], **own}
        is_broker = self._given.start.is_broker
        topics = delta.topics if is_broker else ()
        return self._types.ImageDelta(
            metadata_offset=delta.offset,
            piece=delta.piece,
            brokers=None if delta.brokers is None else self._brokers(delta.brokers),
            controller_id=self._node_id,
            topics=[self._topic(topic, delta, partitions) for topic in topics],
            deleted=tuple(delta.deleted) if is_broker else (),
            log_defaults=settings.log_defaults() if changed else None,
            broker_settings=settings.broker_settings() if changed else None,
            finalized_features=features,
            api_versions=api_versions,
            supported_features=supported_features,
            client_quotas=_client_quotas(delta),
        )

    def _brokers(self, brokers: tuple[Broker, ...]) -> "list[BrokerEndpoint]":
        return [
            self._types.BrokerEndpoint(
                node_id=broker.node_id,
                listener=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                broker_epoch=broker.epoch,
                fenced=broker.fenced,
                in_controlled_shutdown=broker.in_controlled_shutdown,
            )
            for broker in brokers
            for endpoint in broker.endpoints
        ]

    def _topic(self, topic: Topic, delta: Delta, partitions: "_Partitions") -> "TopicImage":
        overrides = delta.overrides[topic.name]
        changed = delta.partial.get(topic.topic_id)
        return self._types.TopicImage(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=partitions.of(topic, changed),
            partial=changed is not None,
            unfinished=topic.topic_id in delta.unfinished,
            overrides=canonical_overrides(overrides) if overrides else {},
            internal=topic.name in INTERNAL_TOPICS,
        )


def metadata_log(
    types: CoreTypes, node_id: int, given: BrokerConfigs, leader_epoch: int, *, on_disk: bool
) -> "ImageDelta":
    """Return the first step of a core: only the metadata log, led by this node.

    Args:
        types: The classes of the core.
        node_id: This node.
        given: The settings at the start.
        leader_epoch: The epoch of this node's leadership.
        on_disk: Whether the log has files.
    """
    partition = Partition((node_id,), (node_id,), node_id, leader_epoch, 0)
    topic = Topic(METADATA_TOPIC, METADATA_TOPIC_ID, {0: partition})
    made = types.TopicImage(
        name=METADATA_TOPIC,
        topic_id=METADATA_TOPIC_ID,
        partitions=_Partitions(types).of(topic),
        overrides=_metadata_log_config(given, on_disk=on_disk),
        internal=True,
        hidden=True,
    )
    return types.ImageDelta(metadata_offset=0, topics=[made])


def _metadata_log_config(given: BrokerConfigs, *, on_disk: bool) -> dict[str, str]:
    """Return every setting of the metadata log, which does not inherit the topics' defaults.

    Records may only be deleted when a snapshot contains them. A voter counts its own vote only
    after fsync, whatever the topics' durability.
    """
    config = {name: setting.default for name, setting in topic_settings().items()} | {
        "max.message.bytes": str(BATCH_BYTES_MAX),
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "segment.bytes": given.string("metadata.log.segment.bytes"),
        "segment.ms": given.string("metadata.log.segment.ms"),
        "internal.segment.bytes": given.string("internal.metadata.log.segment.bytes"),
    }
    if on_disk:
        config["flush.messages"] = "1"
    return {name: text for name, text in config.items() if text is not None}


class _Partitions:
    """Creates the partitions of one step; equal ones, for example of 1,000 new topics, are created
    once.
    """

    def __init__(self, types: CoreTypes) -> None:
        self._types = types
        self._made: dict[tuple[int, Partition], PartitionImage] = {}

    def of(self, topic: Topic, indexes: Iterable[int] | None = None) -> "list[PartitionImage]":
        """Return a topic's partitions of ``indexes``, or all of them, by index."""
        wanted = sorted(topic.partitions) if indexes is None else indexes
        return [self._one((index, topic.partitions[index])) for index in wanted]

    def _one(self, item: tuple[int, Partition]) -> "PartitionImage":
        made = self._made.get(item)
        if made is None:
            made = self._made[item] = self._make(*item)
        return made

    def _make(self, index: int, partition: Partition) -> "PartitionImage":
        return self._types.PartitionImage(
            index=index,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            replicas=partition.replicas,
            isr=partition.isr,
            elr=partition.elr,
            last_known_elr=partition.last_known_elr,
            lost=lost_by(partition),
        )


def _client_quotas(
    delta: Delta,
) -> "list[tuple[tuple[tuple[str, str | None], ...], str, float]] | None":
    if delta.client_quotas is None:
        return None
    return [(key.entity, key.limit, value) for key, value in delta.client_quotas.items()]
