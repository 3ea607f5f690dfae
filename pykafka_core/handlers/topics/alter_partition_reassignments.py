"""AlterPartitionReassignments (45): KIP-455.

``ReplicationControlManager.alterPartitionReassignments`` in Kafka.
"""

from pykafka_core.errors import (
    NONE,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    KafkaError,
    NoReassignmentInProgressError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work, check_record_limit
from pykafka_core.handlers.topics.placement import check_assignment
from pykafka_core.metadata.image.image import Partition, Topic
from pykafka_core.metadata.partition_change import Election, change_record
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.metadata.reassignments import (
    assigned,
    in_progress,
    loses_records,
    reverted,
)
from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    Message,
)

_Wanted = AlterPartitionReassignmentsRequest.ReassignablePartition
_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_Partition = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


def handle(context: Context, request: AlterPartitionReassignmentsRequest) -> Work[Outcome]:
    """Begin, end or cancel reassignments; an error of one does not affect the others."""
    if not request.topics:
        return _response(request, [], error_message="")
    if request.timeout_ms <= 0:
        return (yield from _timed_out(request))
    reassignments = _Reassignments(context, request)
    results = []
    for topic in request.topics:
        result = _Topic(name=topic.name, partitions=[])
        results.append(result)
        for wanted in topic.partitions:
            yield
            result.partitions.append(reassignments.result(topic.name, wanted))

    def reply(code: int) -> Work[AlterPartitionReassignmentsResponse]:
        for result in results if code else ():
            for partition in result.partitions:
                yield
                if partition.error_code == NONE:
                    _fail(partition, error_of(code)())
        return _response(request, results)

    return MetadataWrite(list(reassignments.records.values()), reply)


class _Reassignments:
    """The changes of one request; the last of several changes of one partition is made."""

    def __init__(self, context: Context, request: AlterPartitionReassignmentsRequest) -> None:
        self._context = context
        self._rules = PartitionRules(context.image, context.settings)
        self._any_factor = request.allow_replication_factor_change
        self.records: dict[tuple[bytes, int], Message] = {}

    def result(self, name: str, wanted: _Wanted) -> _Partition:
        """Plan the change of one partition, and return its result."""
        result = _Partition(partition_index=wanted.partition_index, error_message=None)
        try:
            self._alter(name, wanted)
        except KafkaError as error:
            _fail(result, error)
        return result

    def _alter(self, name: str, wanted: _Wanted) -> None:
        topic, partition = self._find(name, wanted.partition_index)
        if wanted.replicas is None:
            target = self._reverted(topic, wanted.partition_index, partition)
            rules = self._rules.of(topic)
        else:
            target = self._assigned(partition, wanted.replicas)
            rules = self._rules.asked(topic, Election.ONLINE)
        key = topic.topic_id, wanted.partition_index
        record = change_record(*key, partition, target, rules)
        self.records.pop(key, None)
        if record is not None:
            check_record_limit(len(self.records) + 1)
            self.records[key] = record

    def _find(self, name: str, index: int) -> tuple[Topic, Partition]:
        topic = self._context.image.topics.by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Unable to find a topic named {name}.")
        partition = topic.partitions.get(index)
        if partition is None:
            raise UnknownTopicOrPartitionError(f"Unable to find partition {name}:{index}.")
        return topic, partition

    def _assigned(self, partition: Partition, target: list[int]) -> Partition:
        check_assignment(self._context.image, target, None)
        factor = len(set(partition.replicas) - set(partition.removing))
        if not self._any_factor and len(target) != factor:
            raise InvalidReplicationFactorError(
                f"The replication factor is changed from {factor} to {len(target)}"
            )
        return assigned(partition, target)

    def _reverted(self, topic: Topic, index: int, partition: Partition) -> Partition:
        if not in_progress(partition):
            raise NoReassignmentInProgressError
        before = reverted(partition)
        if not loses_records(partition, before):
            return before
        if not self._rules.allows_unclean(topic):
            raise InvalidReplicaAssignmentError(
                f"Unable to revert partition assignment for {topic.name}:{index} because "
                "it would require an unclean leader election."
            )
        return before._replace(isr=before.replicas[:1], recovering=True)


def _timed_out(
    request: AlterPartitionReassignmentsRequest,
) -> Work[AlterPartitionReassignmentsResponse]:
    error_code = RequestTimedOutError.code
    results = []
    for topic in request.topics:
        result = _Topic(name=topic.name, partitions=[])
        results.append(result)
        for wanted in topic.partitions:
            yield
            result.partitions.append(
                _Partition(
                    partition_index=wanted.partition_index,
                    error_code=error_code,
                    error_message=None,
                )
            )
    return _response(request, results, error_code)


def _response(
    request: AlterPartitionReassignmentsRequest,
    results: list[_Topic],
    error_code: int = NONE,
    error_message: str | None = None,
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error_code,
        error_message=error_message,
        responses=results,
    )


def _fail(result: _Partition, error: KafkaError) -> None:
    result.error_code = error.code
    result.error_message = None if isinstance(error, NoReassignmentInProgressError) else str(error)
