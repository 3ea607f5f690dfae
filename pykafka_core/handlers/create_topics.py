"""CreateTopics (19): contract 37, 66; ``ReplicationControlManager.createTopics`` in Kafka."""

from collections import Counter
from typing import NamedTuple

from pykafka_core.config import TopicConfigs
from pykafka_core.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    KafkaError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import RECORDS_MAX, Propose, bounded
from pykafka_core.handlers.placement import NewPartitions, check_assignment, place
from pykafka_core.handlers.topic_config_rows import TopicRows
from pykafka_core.handlers.topic_names import Collisions, check_topic_name
from pykafka_core.protocol.messages import (
    ConfigRecord,
    CreateTopicsRequest,
    CreateTopicsResponse,
    Message,
    TopicRecord,
)
from pykafka_core.types import METADATA_TOPIC, RESOURCE_TOPIC

_Result = CreateTopicsResponse.CreatableTopicResult


class _Plan(NamedTuple):
    """A topic that can be made: its answer, and the records that make it."""

    result: _Result
    records: list[Message]


def handle(context: Context, request: CreateTopicsRequest) -> Propose:
    """Plan each topic by itself; those that cannot be made do not hinder the others."""
    try:
        plans = _plan_all(context, request)
        records = bounded([record for plan in plans for record in plan.records])
    except PolicyViolationError as error:
        names = dict.fromkeys(topic.name for topic in request.topics)
        plans = [_Plan(_failed(name, error), []) for name in names]
        records = []
    if request.validate_only:
        records = []

    def reply(code: int) -> CreateTopicsResponse:
        results = [
            _failed(plan.result.name, error_of(code)()) if code and plan.records else plan.result
            for plan in plans
        ]
        return CreateTopicsResponse(topics=results)

    return Propose(records, reply)


def _plan_all(context: Context, request: CreateTopicsRequest) -> list[_Plan]:
    counts = Counter(topic.name for topic in request.topics)
    collisions = Collisions(context.image)
    described = TopicRows(context.settings)
    new_partitions = NewPartitions(context.image)
    _check_size(context, request)
    plans: dict[str, _Plan] = {}
    for topic in request.topics:
        if topic.name in plans:
            continue
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            plans[topic.name] = _plan(context, topic, collisions, described, new_partitions)
            collisions.add(topic.name)
        except KafkaError as error:
            plans[topic.name] = _Plan(_failed(topic.name, error), [])
    return list(plans.values())


def _check_size(context: Context, request: CreateTopicsRequest) -> None:
    """Refuse before anything is planned: 10^6 partitions must not cost 10^6 objects."""
    default = context.settings.int("num.partitions")
    total = 0
    for topic in request.topics:
        if topic.assignments:
            total += len(topic.assignments)
        else:
            total += default if topic.num_partitions == -1 else max(topic.num_partitions, 0)
    if total > RECORDS_MAX:
        raise PolicyViolationError(
            f"Excessively large number of partitions per request: {total}, "
            f"at most {RECORDS_MAX} are allowed."
        )


def _plan(
    context: Context,
    topic: CreateTopicsRequest.CreatableTopic,
    collisions: Collisions,
    described: TopicRows,
    new_partitions: NewPartitions,
) -> _Plan:
    _check_name(context, topic.name, collisions)
    overrides = _overrides(context, topic)
    assignments = _assignments(context, topic)
    topic_id = context.new_id()
    partitions = [
        new_partitions.record(topic_id, index, replicas)
        for index, replicas in enumerate(assignments)
    ]
    configs = [
        ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=topic.name, name=name, value=value)
        for name, value in overrides.items()
    ]
    result = _Result(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=described.rows(overrides),
    )
    return _Plan(result, [TopicRecord(name=topic.name, topic_id=topic_id), *configs, *partitions])


def _check_name(context: Context, name: str, collisions: Collisions) -> None:
    if name == METADATA_TOPIC:
        raise InvalidRequestError(f"Creation of internal topic {name} is prohibited.")
    check_topic_name(name)
    if name in context.image.topics.by_name:
        raise TopicAlreadyExistsError(f"Topic '{name}' already exists.")
    collisions.check(name)


def _overrides(context: Context, topic: CreateTopicsRequest.CreatableTopic) -> dict[str, str]:
    overrides: dict[str, str] = {}
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise InvalidConfigError(
            f"Null value not supported for topic configs: {', '.join(missing)}"
        )
    for config in topic.configs:
        assert config.value is not None, "nulls were refused above"
        overrides[config.name] = config.value
    if overrides:
        TopicConfigs.validate(overrides, context.settings)
    return overrides


def _assignments(
    context: Context, topic: CreateTopicsRequest.CreatableTopic
) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _manual(context, topic)
    count, factor = topic.num_partitions, topic.replication_factor
    if count < -1 or count == 0:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value."
        )
    if factor < -1 or factor == 0:
        raise InvalidReplicationFactorError(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if count == -1:
        count = context.settings.int("num.partitions")
    if factor == -1:
        factor = context.settings.int("default.replication.factor")
    return place(context.image, 0, count, factor)


def _manual(context: Context, topic: CreateTopicsRequest.CreatableTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != -1:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != -1:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    chosen: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in chosen:
            raise InvalidReplicaAssignmentError(
                f"Found multiple manual partition assignments for partition {index}"
            )
        check_assignment(context.image, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        chosen[index] = tuple(assignment.broker_ids)
    if sorted(chosen) != list(range(len(chosen))):
        raise InvalidReplicaAssignmentError(
            "partitions should be a consecutive 0-based integer sequence"
        )
    return [chosen[index] for index in range(len(chosen))]


def _failed(name: str, error: KafkaError) -> _Result:
    return _Result(name=name, error_code=error.code, error_message=str(error))
