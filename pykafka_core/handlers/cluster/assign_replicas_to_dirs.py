"""AssignReplicasToDirs (73): KIP-858.

``ReplicationControlManager.handleAssignReplicasToDirs`` in Kafka.
"""

from pykafka_core.errors import (
    KafkaError,
    NotLeaderOrFollowerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pykafka_core.handlers.cluster.broker_records import registered_broker
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work, check_record_limit
from pykafka_core.metadata.directories import directories_of, is_online
from pykafka_core.metadata.image.features import DIRECTORY_ASSIGNMENT_LEVEL, METADATA_VERSION
from pykafka_core.metadata.image.image import Broker, Partition, Topic
from pykafka_core.metadata.partition_change import changed, check_resignation, record
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.metadata.reassignments import without
from pykafka_core.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    Message,
)

_Directory = AssignReplicasToDirsResponse.DirectoryData
_Topic = AssignReplicasToDirsResponse.TopicData
_Partition = AssignReplicasToDirsResponse.PartitionData


def handle(context: Context, request: AssignReplicasToDirsRequest) -> Work[Outcome]:
    """Change the directories of a broker's replicas.

    A replica in an offline directory leaves the ISR and does not lead, if enough healthy members
    remain (`check_resignation`). An error of one partition does not affect the others.
    """
    try:
        broker = registered_broker(context, request.broker_id, request.broker_epoch)
        if context.image.features.get(METADATA_VERSION, 0) < DIRECTORY_ASSIGNMENT_LEVEL:
            raise UnsupportedVersionError("Directory assignment is not supported yet.")
    except KafkaError as error:
        return AssignReplicasToDirsResponse(error_code=error.code)
    assignments = _Assignments(context, broker)
    for asked in request.directories:
        directory = _Directory(id=asked.id, topics=[])
        assignments.results.append(directory)
        for topic in asked.topics:
            result = _Topic(topic_id=topic.topic_id, partitions=[])
            directory.topics.append(result)
            for wanted in topic.partitions:
                yield
                index = wanted.partition_index
                code = assignments.assign(asked.id, topic.topic_id, index)
                result.partitions.append(_Partition(partition_index=index, error_code=code))
    return MetadataWrite(assignments.records(), assignments.reply)


class _Assignments:
    """The changes of one request and their results; the last change of a partition counts."""

    def __init__(self, context: Context, broker: Broker) -> None:
        self._topics = context.image.topics.by_id
        self._rules = PartitionRules(context.image, context.settings)
        self._broker = broker
        self._assigned: dict[tuple[bytes, int], Partition] = {}
        self.results: list[_Directory] = []

    def reply(self, code: int) -> AssignReplicasToDirsResponse:
        """Return the results, or the error of the commit."""
        if code:
            return AssignReplicasToDirsResponse(error_code=code)
        return AssignReplicasToDirsResponse(directories=self.results)

    def records(self) -> list[Message]:
        """Return the records of the changed partitions."""
        made = (
            record(topic_id, index, self._topics[topic_id].partitions[index], found)
            for (topic_id, index), found in self._assigned.items()
        )
        return [change for change in made if change is not None]

    def assign(self, directory: bytes, topic_id: bytes, index: int) -> int:
        """Change the directory of one replica, and return the error code."""
        place = topic_id, index
        try:
            topic, partition = self._find(topic_id, index)
            check_record_limit(len(self._assigned) + (place not in self._assigned))
            self._assigned[place] = self._moved(topic, partition, directory)
        except KafkaError as error:
            return error.code
        return 0

    def _find(self, topic_id: bytes, index: int) -> tuple[Topic, Partition]:
        topic = self._topics.get(topic_id)
        if topic is None:
            raise UnknownTopicIdError
        partition = topic.partitions.get(index)
        if partition is None:
            raise UnknownTopicOrPartitionError
        if self._broker.node_id not in partition.replicas:
            raise NotLeaderOrFollowerError
        return topic, partition

    def _moved(self, topic: Topic, partition: Partition, directory: bytes) -> Partition:
        node_id = self._broker.node_id
        held = zip(partition.replicas, directories_of(partition), strict=True)
        moved = partition._replace(
            directories=tuple(directory if node == node_id else known for node, known in held)
        )
        isr = moved.isr
        if node_id in isr and not is_online(self._broker, directory):
            rules = self._rules.of(topic)
            check_resignation(partition, node_id, self._rules.min_isr(topic), rules.brokers)
            isr = without(isr, (node_id,))
        return changed(moved, moved._replace(isr=isr), self._rules.of(topic))
