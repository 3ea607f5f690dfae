"""Common parts of AlterConfigs and IncrementalAlterConfigs: from changes to records.

Each resource is planned separately: a refused change does not affect other resources. The checks
are in Kafka's order, so that a request with several errors gets Kafka's error.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from pykafka_core.config import VALUE_TOO_LONG, Scope, TopicConfigs, is_too_long, settings
from pykafka_core.errors import (
    BrokerIdNotRegisteredError,
    InvalidConfigError,
    InvalidRequestError,
    KafkaError,
    PolicyViolationError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.configs.checks import (
    check_broker_changes,
    check_broker_future,
    check_client_metrics,
    check_cordoned,
    check_cordoned_subset,
    check_group,
    check_min_insync_replicas,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work, check_record_limit, collect, without_traceback
from pykafka_core.handlers.topic_names import check_topic_name
from pykafka_core.metadata.image.cow_map import fork
from pykafka_core.metadata.image.features import ELIGIBLE_LEADER_REPLICAS
from pykafka_core.metadata.partition_rules import MIN_ISR
from pykafka_core.protocol.messages import ClearElrRecord, ConfigRecord, Message
from pykafka_core.types import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    ConfigResource,
)

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

_SCOPES = {
    RESOURCE_TOPIC: Scope.TOPIC,
    RESOURCE_BROKER: Scope.BROKER,
    RESOURCE_CLIENT_METRICS: Scope.CLIENT_METRICS,
    RESOURCE_GROUP: Scope.GROUP,
}


C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)

NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}")


class Operation(NamedTuple):
    """One change of one setting; ``kind`` is SET, DELETE, APPEND or SUBTRACT."""

    name: str
    kind: int
    value: str | None


class _Resource(Protocol[C_co]):
    """The common fields of a resource in both requests."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> Sequence[C_co]: ...


class ResourceChange(NamedTuple):
    """The requested changes of one resource."""

    resource_type: int
    resource_name: str
    operations: Sequence[Operation]


class Result(NamedTuple):
    """The response for one resource, with the names of the response's fields."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


class PlannedChange(NamedTuple):
    """The plan for one resource: records to append, or an error."""

    change: ResourceChange
    records: Sequence[Message]
    error: KafkaError | None

    def outcome(self, code: int) -> Result:
        """Return the response after an append with the result ``code``."""
        error = self.error or (error_of(code)() if code and self.records else None)
        kind, name, _ = self.change
        if error is None:
            return Result(0, None, kind, name)
        return Result(error.code, str(error), kind, name)


def plan_all(
    context: Context,
    resources: Sequence[_Resource[C]],
    operation: Callable[[C], Operation],
    *,
    replace: bool,
) -> Work[list[PlannedChange]]:
    """Plan every resource of a request; refuse all if the records would be too many.

    Args:
        operation: Converts a config of a resource to an operation.
        replace: Whether to remove existing configs without an operation.
    """
    try:
        check_record_limit(len(resources))
    except PolicyViolationError as error:
        refusal = without_traceback(error)
        return (
            yield from collect(
                PlannedChange(ResourceChange(one.resource_type, one.resource_name, ()), (), refusal)
                for one in resources
            )
        )
    requested = []
    for one in resources:
        operations = yield from collect(map(operation, one.configs))
        requested.append(ResourceChange(one.resource_type, one.resource_name, operations))
        yield
    counts = Counter(map(_resource, requested))
    plans = []
    for each in requested:
        yield
        try:
            check_record_limit(len(each.operations))
            if counts[_resource(each)] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            records = yield from _plan(context, each, replace=replace)
            plans.append(PlannedChange(each, records, None))
        except KafkaError as error:
            plans.append(PlannedChange(each, (), without_traceback(error)))
    try:
        check_record_limit(sum(len(plan.records) for plan in plans))
    except PolicyViolationError as error:
        refusal = without_traceback(error)
        return [PlannedChange(plan.change, (), plan.error or refusal) for plan in plans]
    return plans


def records_of(context: Context, plans: Sequence[PlannedChange]) -> Work[list[Message]]:
    """Return the records of all plans, and the records that follow from them.

    A change of ``min.insync.replicas`` clears the eligible leader replicas: they were eligible
    under the old value, and may lack records that are committed under the new one (KIP-966).
    """
    records = [record for plan in plans for record in plan.records]
    if not context.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0):
        return records
    for record in tuple(records):
        yield
        if isinstance(record, ConfigRecord) and record.name == MIN_ISR:
            name = record.resource_name if record.resource_type == RESOURCE_TOPIC else ""
            if (yield from _has_eligible(context, name)):
                records.append(ClearElrRecord(topic_name=name))
    return records


def _has_eligible(context: Context, topic: str) -> Work[bool]:
    """Return whether a partition of a topic has eligible leaders or a last known one.

    An empty topic means all topics.
    """
    by_name = context.image.topics.by_name
    for found in [by_name[topic]] if topic else by_name.values():
        for partition in found.partitions.values():
            yield
            if partition.elr or partition.last_known_elr:
                return True
    return False


def _plan(context: Context, change: ResourceChange, *, replace: bool) -> Work[Sequence[Message]]:
    """Return the records of one resource.

    The cost grows with the number of changes, not with the number of the resource's configs.
    """
    yield from _check_operations(change.operations)
    if change.resource_type == RESOURCE_BROKER_LOGGER and not replace:
        return _plan_loggers(context, change)
    if change.resource_type not in _SCOPES:
        raise InvalidRequestError(f"Unknown resource type {change.resource_type}")
    _check_resource(context, change)
    kind, name = _resource(change)
    existing = context.image.configs.of(kind, name)
    changes = yield from _changes(change, existing)
    if replace:
        removed = yield from collect(n for n in existing if n not in changes)
        check_record_limit(len(removed))
        changes |= dict.fromkeys(removed)
    altered = dict((yield from collect(i for i in changes.items() if existing.get(i[0]) != i[1])))
    yield from _check_future(context, change, existing, altered)
    return (
        yield from collect(
            ConfigRecord(
                resource_type=kind,
                resource_name=name,
                name=setting,
                value=value,
            )
            for setting, value in altered.items()
        )
    )


def _resource(change: ResourceChange) -> ConfigResource:
    """Return the altered resource.

    Kafka accepts ``01`` for broker 1, but stores it in a place that no broker reads.
    """
    kind, name, _ = change
    if kind == RESOURCE_BROKER and NUMBER.fullmatch(name):
        name = str(int(name))
    return ConfigResource(kind, name)


def _check_operations(operations: Sequence[Operation]) -> Work[None]:
    named = yield from collect(operation.name for operation in operations)
    if len(set(named)) != len(named):
        raise InvalidRequestError("Error due to duplicate config keys")
    nulls = [o.name for o in operations if o.value is None and o.kind != DELETE]
    if nulls:
        raise InvalidRequestError(f"Null value not supported for : {','.join(nulls)}")


def _check_resource(context: Context, change: ResourceChange) -> None:
    kind, name, _ = change
    if kind == RESOURCE_TOPIC:
        if not name:
            raise InvalidRequestError("Default topic resources are not allowed.")
        check_topic_name(name)
        if name not in context.image.topics.by_name:
            raise UnknownTopicOrPartitionError(f"The topic '{name}' does not exist.")
    elif kind == RESOURCE_BROKER and name:
        _check_node(context, name)
    elif kind == RESOURCE_CLIENT_METRICS and not name:
        raise InvalidRequestError("Subscription name can't be empty")
    elif kind == RESOURCE_GROUP and not name:
        raise InvalidRequestError("Default group resources are not allowed.")


def _check_node(context: Context, name: str) -> None:
    """Check that clients alter a node's configs at that node, which forwards the request."""
    number = node_id(name)
    if _is_of_controllers(context):
        if number not in context.image.brokers and number not in context.image.controllers:
            raise BrokerIdNotRegisteredError(f"No node with id {number} found.")
    elif number != context.node.node_id:
        raise InvalidRequestError(
            f"Unexpected broker id, expected {context.node.node_id}, but received {name}"
        )


def _is_of_controllers(context: Context) -> bool:
    """Whether the request came by a listener of controllers."""
    return context.caller.listener.upper() in context.settings.start.controller_names


def _plan_loggers(context: Context, change: ResourceChange) -> Sequence[Message]:
    """Refuse every change: clients see no loggers.

    The process sets its levels with Python's ``logging``.
    """
    if node_id(change.resource_name) != context.node.node_id:
        raise InvalidRequestError(
            f"Unexpected node id. Expected {context.node.node_id}, but received {change.resource_name}"
        )
    for operation in change.operations:
        raise InvalidConfigError(f"Logger {operation.name} does not exist!")
    return ()


def node_id(name: str, what: str = "Node id") -> int:
    """Return the number of a broker resource, with the rules of ``Integer.parseInt``.

    Raises:
        InvalidRequestError: The name is not such a number.
    """
    if not NUMBER.fullmatch(name) or not -(2**31) <= int(name) < 2**31:
        raise InvalidRequestError(f"{what} must be an integer, but it is: {name}")
    return int(name)


def _changes(change: ResourceChange, existing: Mapping[str, str]) -> Work[dict[str, str | None]]:
    """Return the new value of each named config; None removes the config."""
    changes: dict[str, str | None] = {}
    for name, kind, value in change.operations:
        yield
        if kind == SET:
            changes[name] = value
        elif kind == DELETE:
            changes[name] = None
        elif kind in (APPEND, SUBTRACT):
            assert value is not None, "nulls were refused"
            changes[name] = _list_change(change.resource_type, name, kind, value, existing)
        else:
            raise UnknownServerError(f"Unknown operation {kind}")
        if is_too_long(changes[name] or ""):
            raise InvalidConfigError(VALUE_TOO_LONG)
    return changes


def _list_change(
    resource_type: int, name: str, kind: int, value: str, existing: Mapping[str, str]
) -> str:
    setting = settings(_SCOPES[resource_type]).get(name)
    if setting is None or setting.type.name != "LIST":
        word = "APPEND" if kind == APPEND else "SUBTRACT"
        if resource_type == RESOURCE_BROKER:
            text = f"Config value {word.lower()} is not allowed for config key: {name}"
        else:
            text = f"Can't {word} to key {name} because its type is not LIST."
        raise InvalidConfigError(text)
    old = _parts(existing.get(name, setting.default or ""))
    new = _parts(value)
    if kind == SUBTRACT:
        gone = set(new)
        return ",".join(part for part in old if part not in gone)
    return ",".join(dict.fromkeys([*old, *new]))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _check_future(
    context: Context,
    change: ResourceChange,
    existing: Mapping[str, str],
    altered: Mapping[str, str | None],
) -> Work[None]:
    """Check the configs that the resource would have after the change."""
    kind = change.resource_type
    future = fork(existing)
    for name, value in altered.items():
        yield
        if value is None:
            future.pop(name, None)
        else:
            future[name] = value
    if kind == RESOURCE_TOPIC:
        TopicConfigs.validate(future, context.settings, existing)
    elif kind == RESOURCE_BROKER:
        _, name = _resource(change)
        sets = {n: value for n, value in altered.items() if value is not None}
        if _is_of_controllers(context) and not context.is_forwarded:
            check_cordoned_subset(sets, existing)
        yield from check_broker_changes(sets, existing, per_broker=bool(name))
        check_broker_future(context.image, context.settings, name, future)
        check_min_insync_replicas(context.image, altered, per_broker=bool(name))
        check_cordoned(context.image, altered)
    elif kind == RESOURCE_CLIENT_METRICS:
        yield from check_client_metrics(future)
    else:
        check_group(future, context.settings)
