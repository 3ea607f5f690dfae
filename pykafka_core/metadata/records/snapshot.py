"""Snapshots of the metadata: an image as records, in the format of Kafka's ``.checkpoint`` files.

A snapshot replaces the metadata log below its end offset. Between a header and a footer, which are
control records (KIP-630), it has the records that build this image from an empty one. They are in
the order of Kafka's image writer, because a reader needs the feature levels first.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from pykafka_core._core import build_batch
from pykafka_core._records import RecordBatchReader
from pykafka_core.errors import KafkaError, MetadataError
from pykafka_core.metadata.image.image import Broker, Controller, MetadataImage, Partition, Topic
from pykafka_core.metadata.records.codec import decode_batches, encode, split_batches
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.protocol import encode_message
from pykafka_core.protocol.messages import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    Message,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)

HEADER_KEY = b"\0\0\0\x03"
"""Version 0 and the type of the control record (``ControlRecordType``)."""
FOOTER_KEY = b"\0\0\0\x04"
BATCH_RECORDS_MAX = 2000
"""Maximum number of records in a batch; with partition records it has about 200 KiB."""
NO_NODE = -1
NO_QUORUM_RECORDS = QuorumRecords()


def records_of(image: MetadataImage) -> Iterator[Message]:
    """Yield the records that build ``image`` from an empty one."""
    for name, level in image.features.items():
        yield FeatureLevelRecord(name=name, feature_level=level)
    yield from map(_broker, image.brokers.values())
    yield from map(_controller, image.controllers.values())
    for topic in image.topics.by_id.values():
        yield from _topic(topic)
    for resource, settings in image.configs.by_resource.items():
        for name, text in settings.items():
            yield ConfigRecord(
                resource_type=resource.kind, resource_name=resource.name, name=name, value=text
            )
    yield from _rest(image)


def _rest(image: MetadataImage) -> Iterator[Message]:
    for key, value in image.client_quotas.items():
        entity = [
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in key.entity
        ]
        yield ClientQuotaRecord(entity=entity, key=key.limit, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(
            broker_id=NO_NODE, broker_epoch=NO_NODE, next_producer_id=image.next_producer_id
        )
    yield from chain(
        image.acls.values(), image.scram_credentials.values(), image.delegation_tokens.values()
    )
    if image.zk_migration_state:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)


def _broker(broker: Broker) -> Message:
    return RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=name, host=host, port=port, security_protocol=protocol
            )
            for name, host, port, protocol in broker.endpoints
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if broker.cordoned is None else list(broker.cordoned),
    )


def _controller(controller: Controller) -> Message:
    return RegisterControllerRecord(
        controller_id=controller.node_id,
        incarnation_id=controller.incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=name, host=host, port=port, security_protocol=protocol
            )
            for name, host, port, protocol in controller.endpoints
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in controller.features.items()
        ],
    )


def _topic(topic: Topic) -> Iterator[Message]:
    yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
    for index, partition in topic.partitions.items():
        yield _partition(topic.topic_id, index, partition)


def _partition(topic_id: bytes, index: int, partition: Partition) -> Message:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=int(partition.recovering),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def encode_snapshot(
    records: Iterable[Message],
    leader_epoch: int,
    time_ms: int,
    quorum: QuorumRecords = NO_QUORUM_RECORDS,
) -> bytes:
    """Return the bytes of a snapshot file.

    Args:
        records: The content.
        leader_epoch: Leader epoch of the last record below the end offset; all batches have it.
        time_ms: Append time of that record.
        quorum: The quorum's control records, which follow the header in its batch.
    """
    header = encode_message(SnapshotHeaderRecord(last_contained_log_timestamp=time_ms), 0)
    first_records = [(HEADER_KEY, header), *quorum.records()]
    batches = [_control(first_records, 0, leader_epoch, time_ms)]
    offset = len(first_records)
    values = [(None, encode(record)) for record in records]
    for first in range(0, len(values), BATCH_RECORDS_MAX):
        some = values[first : first + BATCH_RECORDS_MAX]
        batches.append(
            build_batch(
                some, base_offset=offset, leader_epoch=leader_epoch, timestamp_default=time_ms
            )
        )
        offset += len(some)
    footer = encode_message(SnapshotFooterRecord(), 0)
    batches.append(_control([(FOOTER_KEY, footer)], offset, leader_epoch, time_ms))
    return b"".join(batches)


def decode_snapshot(content: bytes) -> list[Message]:
    """Return the metadata records of a snapshot file or of a cluster's ``bootstrap.checkpoint``.

    Raises:
        MetadataError: The file is incomplete, damaged, or contains an unsupported record.
    """
    records = [record for _, record in decode_batches(content).records]
    batches = list(split_batches(content))
    if not batches or (_control_keys(batches[0])[0], _control_keys(batches[-1])[-1]) != (
        HEADER_KEY,
        FOOTER_KEY,
    ):
        raise MetadataError("it does not reach from a snapshot's header to its footer")
    return records


def _control_keys(batch: bytes) -> list[bytes | None]:
    """Return the keys of a batch's control records; one None if there are no records."""
    try:
        return [record.key for record in RecordBatchReader(batch, control=True)] or [None]
    except KafkaError as error:
        raise MetadataError(f"a batch is damaged: {error}") from error


def _control(
    records: list[tuple[bytes, bytes]], offset: int, leader_epoch: int, time_ms: int
) -> bytes:
    return build_batch(
        records,
        base_offset=offset,
        leader_epoch=leader_epoch,
        timestamp_default=time_ms,
        control=True,
    )
