"""CreateTopics (19): contract/kafka.md#37, #66.

``ReplicationControlManager.createTopics`` in Kafka.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pykafka_core.config import (
    BrokerConfigs,
    ConfigSource,
    TopicConfigs,
    topic_rows,
    topic_settings,
)
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
from pykafka_core.handlers.outcome import (
    RECORDS_MAX,
    MetadataWrite,
    Work,
    check_record_limit,
    collect,
    without_traceback,
)
from pykafka_core.handlers.topic_names import Collisions, check_topic_name
from pykafka_core.handlers.topics.placement import NewPartitions, Placer, check_assignment
from pykafka_core.protocol.messages import (
    ConfigRecord,
    CreateTopicsRequest,
    CreateTopicsResponse,
    Message,
    TopicRecord,
)
from pykafka_core.types import METADATA_TOPIC, RESOURCE_TOPIC

_Result = CreateTopicsResponse.CreatableTopicResult
_Row = CreateTopicsResponse.CreatableTopicConfigs


class _Plan(NamedTuple):
    """A topic that can be created: its result, and its records."""

    result: _Result
    records: list[Message]


def handle(context: Context, request: CreateTopicsRequest) -> Work[MetadataWrite]:
    """Plan each topic separately; an error of one does not affect the others."""
    try:
        plans = yield from _plan_all(context, request)
        records = [record for plan in plans for record in plan.records]
        check_record_limit(len(records))
    except PolicyViolationError as error:
        refusal = without_traceback(error)
        names = yield from collect(topic.name for topic in request.topics)
        refused = (_Plan(_failed(name, refusal), []) for name in dict.fromkeys(names))
        plans = yield from collect(refused)
        records = []
    if request.validate_only:
        records = []

    def reply(code: int) -> Work[CreateTopicsResponse]:
        results = yield from collect(
            _failed(plan.result.name, error_of(code)()) if code and plan.records else plan.result
            for plan in plans
        )
        return CreateTopicsResponse(topics=results)

    return MetadataWrite(records, reply)


def _plan_all(context: Context, request: CreateTopicsRequest) -> Work[list[_Plan]]:
    yield from _check_size(context, request)
    counts = Counter(topic.name for topic in request.topics)
    planner = _Planner(context)
    plans: dict[str, _Plan] = {}
    for topic in request.topics:
        yield
        if topic.name in plans:
            continue
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            plans[topic.name] = yield from planner.plan(topic)
        except KafkaError as error:
            plans[topic.name] = _Plan(_failed(topic.name, error), [])
    return list(plans.values())


def _check_size(context: Context, request: CreateTopicsRequest) -> Work[None]:
    """Refuse a large request before any planning: 10^6 partitions must not cost 10^6 objects.

    Each config is a record too.
    """
    default = context.settings.int("num.partitions")
    total = 0
    for topic in request.topics:
        yield
        check_record_limit(len(topic.configs))
        if topic.assignments:
            total += len(topic.assignments)
        else:
            total += default if topic.num_partitions == -1 else max(topic.num_partitions, 0)
    if total > RECORDS_MAX:
        raise PolicyViolationError(
            f"Excessively large number of partitions per request: {total}, "
            f"at most {RECORDS_MAX} are allowed."
        )


class _Planner:
    """Plans the topics of one request.

    A request often has 1,000 topics, so common data is computed once.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._collisions = Collisions(context.image)
        self._rows = _ConfigRows(context.settings)
        self._new_partitions = NewPartitions(context.image)
        self._placer = Placer(context.image)

    def plan(self, topic: CreateTopicsRequest.CreatableTopic) -> Work[_Plan]:
        """Return a topic's result and records; later topics must not collide with it.

        Raises:
            KafkaError: The topic cannot be created.
        """
        _check_name(self._context, topic.name, self._collisions)
        overrides = _overrides(self._context, topic) if topic.configs else {}
        topic_id = self._context.node.new_id()
        assignments = yield from self._assignments(topic, topic_id)
        records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
        for name, value in overrides.items():
            records.append(
                ConfigRecord(
                    resource_type=RESOURCE_TOPIC, resource_name=topic.name, name=name, value=value
                )
            )
        for index, replicas in enumerate(assignments):
            records.append(self._new_partitions.record(topic_id, index, replicas))
            yield
        result = _Result(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(assignments),
            replication_factor=len(assignments[0]),
            configs=self._rows.rows(overrides),
        )
        self._collisions.add(topic.name)
        return _Plan(result, records)

    def _assignments(
        self, topic: CreateTopicsRequest.CreatableTopic, topic_id: bytes
    ) -> Work[list[tuple[int, ...]]]:
        if topic.assignments:
            return _manual(self._context, topic)
        count, factor = _size(self._context, topic.num_partitions, topic.replication_factor)
        self._placer.check(factor)
        replicas = self._placer.replicas
        return (yield from collect(replicas(topic_id, index, factor) for index in range(count)))


class _ConfigRows:
    """The effective settings of new topics, which the response lists since version 5.

    All topics inherit the same values, so these are looked up once and their rows are shared;
    otherwise a request for 1000 topics would resolve 35,000 configs.
    """

    def __init__(self, settings: BrokerConfigs) -> None:
        self._inherited = {
            row.name: _Row(
                name=row.name,
                value=row.value,
                read_only=row.read_only,
                config_source=int(row.source),
                is_sensitive=row.is_sensitive,
            )
            for row in topic_rows({}, settings)
        }
        self._without_overrides = list(self._inherited.values())

    def rows(self, overrides: Mapping[str, str]) -> list[_Row]:
        """Return every config of a topic with ``overrides``, by name; do not change the rows."""
        if not overrides:
            return self._without_overrides
        return [
            _overridden(name, overrides[name]) if name in overrides else row
            for name, row in self._inherited.items()
        ]


def _overridden(name: str, text: str) -> _Row:
    value = topic_settings()[name].canonical(text)
    return _Row(name=name, value=value, config_source=int(ConfigSource.TOPIC_CONFIG))


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
    TopicConfigs.validate(overrides, context.settings)
    return overrides


def _size(context: Context, count: int, factor: int) -> tuple[int, int]:
    """Return the number of a topic's partitions, and the number of replicas of each."""
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
    return count, factor


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
