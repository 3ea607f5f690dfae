"""CreatePartitions (37): contract/kafka.md#37.

``ReplicationControlManager.createPartitions`` in Kafka.
"""

from collections import Counter

from pykafka_core.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    KafkaError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import (
    RECORDS_MAX,
    MetadataWrite,
    Work,
    check_record_limit,
    collect,
)
from pykafka_core.handlers.topics.placement import NewPartitions, Placer, check_assignment
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    Message,
    PartitionRecord,
)

_Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(context: Context, request: CreatePartitionsRequest) -> Work[MetadataWrite]:
    """Add partitions to each topic separately; an error of one does not affect the others."""
    names = yield from collect(topic.name for topic in request.topics)
    counts = Counter(names)
    results: dict[str, _Result] = {}
    records: list[Message] = []
    for topic in request.topics:
        yield
        if topic.name in results:
            continue
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            added = yield from _plan(context, topic)
            check_record_limit(len(records) + len(added))
            records += added
            results[topic.name] = _Result(name=topic.name)
        except KafkaError as error:
            results[topic.name] = _failed(topic.name, error)

    def reply(code: int) -> Work[CreatePartitionsResponse]:
        responses = yield from collect(
            _failed(result.name, error_of(code)()) if code and not result.error_code else result
            for result in results.values()
        )
        return CreatePartitionsResponse(results=responses)

    return MetadataWrite([] if request.validate_only else records, reply)


def _plan(
    context: Context, topic: CreatePartitionsRequest.CreatePartitionsTopic
) -> Work[list[PartitionRecord]]:
    found = context.image.topics.by_name.get(topic.name)
    if found is None:
        raise UnknownTopicOrPartitionError
    first = len(found.partitions)
    _check_count(topic, first)
    replicas = yield from _replicas(context, topic, found)
    partitions = NewPartitions(context.image)
    return (
        yield from collect(
            partitions.record(found.topic_id, first + step, nodes)
            for step, nodes in enumerate(replicas)
        )
    )


def _check_count(topic: CreatePartitionsRequest.CreatePartitionsTopic, first: int) -> None:
    if topic.count == first:
        raise InvalidPartitionsError(f"Topic already has {first} partition(s).")
    if topic.count < first:
        raise InvalidPartitionsError(
            f"The topic {topic.name} currently has {first} partition(s); "
            f"{topic.count} would not be an increase."
        )
    added = topic.count - first
    if topic.assignments is not None and len(topic.assignments) != added:
        raise InvalidReplicaAssignmentError(
            f"Attempted to add {added} additional partition(s), "
            f"but only {len(topic.assignments)} assignment(s) were specified."
        )
    if added > RECORDS_MAX:
        raise PolicyViolationError(
            f"Excessively large number of partitions per request: {added}, "
            f"at most {RECORDS_MAX} are allowed."
        )


def _replicas(
    context: Context, topic: CreatePartitionsRequest.CreatePartitionsTopic, found: Topic
) -> Work[list[tuple[int, ...]]]:
    factor = len(found.partitions[0].replicas)
    if topic.assignments is None:
        placer = Placer(context.image)
        placer.check(factor)
        added = range(len(found.partitions), topic.count)
        return (
            yield from collect(placer.replicas(found.topic_id, index, factor) for index in added)
        )
    for assignment in topic.assignments:
        check_assignment(context.image, assignment.broker_ids, factor)
    return [tuple(assignment.broker_ids) for assignment in topic.assignments]


def _failed(name: str, error: KafkaError) -> _Result:
    return _Result(name=name, error_code=error.code, error_message=str(error))
