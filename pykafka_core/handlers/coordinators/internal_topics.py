"""The topics of the coordinators, created by the first FindCoordinator (contract/kafka.md#36)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.errors import InvalidReplicationFactorError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work, collect
from pykafka_core.handlers.topics.placement import NewPartitions, Placer
from pykafka_core.metadata.image.image import NO_LEADER
from pykafka_core.protocol.messages import ConfigRecord, Message, PartitionRecord, TopicRecord
from pykafka_core.types import GROUP_TOPIC, RESOURCE_TOPIC, TRANSACTION_TOPIC


class InternalTopic(NamedTuple):
    """The leaders of a coordinator's topic by partition, and the records that create the topic if
    it does not exist.
    """

    leaders: Sequence[int]
    records: Sequence[Message] = ()

    def leader(self, key: str) -> int:
        """Return the node that coordinates ``key``, or `NO_LEADER`."""
        return self.leaders[coordinator_partition(key, len(self.leaders))]


class _Settings(NamedTuple):
    """Settings of a coordinator's topic: broker settings by name, and fixed values."""

    partitions: str
    replication_factor: str
    overrides: Mapping[str, str]
    fixed: Mapping[str, str]


_SETTINGS: Mapping[str, _Settings] = {
    GROUP_TOPIC: _Settings(
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        {"segment.bytes": "offsets.topic.segment.bytes"},
        {"cleanup.policy": "compact", "compression.type": "producer"},
    ),
    TRANSACTION_TOPIC: _Settings(
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        {
            "segment.bytes": "transaction.state.log.segment.bytes",
            "min.insync.replicas": "transaction.state.log.min.isr",
        },
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
        },
    ),
}
"""See ``groupMetadataTopicConfigs`` and ``transactionStateTopicConfigs`` in Kafka."""


def coordinators_topic(context: Context, name: str) -> Work[InternalTopic]:
    """Return `__consumer_offsets` or `__transaction_state`, as it is or as it would be created.

    Raises:
        InvalidReplicationFactorError: It does not exist, and there are fewer brokers than its
            replication factor. The text names the setting.
    """
    found = context.image.topics.by_name.get(name)
    if found is not None:
        partitions = found.partitions
        absent = (partitions.get(index) for index in range(len(partitions)))
        return InternalTopic([part.leader if part else NO_LEADER for part in absent])
    made_of, settings = _SETTINGS[name], context.settings
    given = {key: str(settings.int(named)) for key, named in made_of.overrides.items()}
    count = settings.int(made_of.partitions)
    factor = settings.int(made_of.replication_factor)
    placer = Placer(context.image)
    try:
        placer.check(factor)
    except InvalidReplicationFactorError as error:
        raise InvalidReplicationFactorError(
            f"{name} cannot be created: {error} "
            f"{made_of.replication_factor} needs {factor} running broker(s)."
        ) from error
    overrides = {**made_of.fixed, **given}
    return (yield from _made(context, name, count, placer, factor, overrides))


def _made(
    context: Context,
    name: str,
    count: int,
    placer: Placer,
    factor: int,
    overrides: Mapping[str, str],
) -> Work[InternalTopic]:
    topic_id = context.node.new_id()
    new_partitions = NewPartitions(context.image)
    partitions: list[PartitionRecord] = yield from collect(
        new_partitions.record(topic_id, index, placer.replicas(topic_id, index, factor))
        for index in range(count)
    )
    records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=name, name=key, value=value)
        for key, value in overrides.items()
    ]
    return InternalTopic([record.leader for record in partitions], [*records, *partitions])
