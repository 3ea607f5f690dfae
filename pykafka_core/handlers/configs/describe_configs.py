"""DescribeConfigs (32): contract/kafka.md#38; ``ConfigHelper`` in Kafka."""

from pykafka_core.config import (
    ConfigRow,
    broker_rows,
    client_metrics_rows,
    cluster_rows,
    group_rows,
    topic_rows,
)
from pykafka_core.errors import InvalidRequestError, KafkaError, UnknownTopicOrPartitionError
from pykafka_core.handlers.configs.changes import node_id
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Slices, collect
from pykafka_core.handlers.topic_names import check_topic_name
from pykafka_core.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse
from pykafka_core.types import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    ConfigResource,
)

_Result = DescribeConfigsResponse.DescribeConfigsResult
_Config = DescribeConfigsResponse.DescribeConfigsResourceResult
_Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


def handle(context: Context, request: DescribeConfigsRequest) -> Slices[DescribeConfigsResponse]:
    """Describe each resource by itself; one that cannot be does not hinder the others.

    A resource that is named several times is answered once, with all the settings that were asked of it: clients
    know answers by their resource, and a short request must not get a long answer.
    """
    results = []
    inherited = _Inherited(context, request)
    merged = yield from _merged(request)
    for resource, names in merged.items():
        yield
        result = _Result(resource_type=resource.kind, resource_name=resource.name)
        try:
            if inherited.is_all_of(resource, names):
                result.configs = inherited.rows()
            else:
                rows = _asked(_rows(context, resource, names), names)
                result.configs = [_described(row, request) for row in rows]
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
            result.configs = []
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _merged(request: DescribeConfigsRequest) -> Slices[dict[ConfigResource, frozenset[str]]]:
    """The settings asked of each resource; empty for all."""
    asked: dict[ConfigResource, set[str] | None] = {}
    for found in request.resources:
        yield
        resource = ConfigResource(found.resource_type, found.resource_name)
        names = asked.setdefault(resource, set())
        if not found.configuration_keys or names is None:
            asked[resource] = None
        else:
            names |= set((yield from collect(found.configuration_keys)))
    return {resource: frozenset(names or ()) for resource, names in asked.items()}


class _Inherited:
    """Rows of a topic without settings of its own: the same for all of them, so they are made once a request."""

    def __init__(self, context: Context, request: DescribeConfigsRequest) -> None:
        self._context = context
        self._request = request
        self._rows: list[_Config] | None = None

    def is_all_of(self, resource: ConfigResource, names: frozenset[str]) -> bool:
        """Whether all of an existing topic is asked for, and it has no settings."""
        image = self._context.image
        return (
            resource.kind == RESOURCE_TOPIC
            and not names
            and resource.name in image.topics.by_name
            and not image.configs.of(RESOURCE_TOPIC, resource.name)
        )

    def rows(self) -> "list[_Config]":
        """Not to be changed."""
        if self._rows is None:
            rows = topic_rows({}, self._context.settings)
            self._rows = [_described(row, self._request) for row in rows]
        return self._rows


def _rows(
    context: Context,
    resource: ConfigResource,
    names: frozenset[str],
) -> list[ConfigRow]:
    """Those of one resource; where settings are many only ``names`` are looked up, all if empty."""
    kind, name = resource.kind, resource.name
    if kind == RESOURCE_TOPIC:
        return _topic_rows(context, name, names)
    if kind == RESOURCE_BROKER:
        return _broker_rows(context, name, names)
    if kind == RESOURCE_BROKER_LOGGER:
        return _logger_rows(context, name)
    if kind == RESOURCE_CLIENT_METRICS:
        _require(name, "Client metrics subscription name must not be empty")
        return client_metrics_rows(context.image.configs.of(kind, name))
    if kind == RESOURCE_GROUP:
        _require(name, "Group name must not be empty")
        return group_rows(context.image.configs.of(kind, name), context.settings)
    raise InvalidRequestError(f"Unsupported resource type: {kind}")


def _topic_rows(context: Context, name: str, names: frozenset[str]) -> list[ConfigRow]:
    check_topic_name(name)
    if name not in context.image.topics.by_name:
        raise UnknownTopicOrPartitionError
    return topic_rows(context.image.configs.of(RESOURCE_TOPIC, name), context.settings, names)


def _broker_rows(context: Context, name: str, names: frozenset[str]) -> list[ConfigRow]:
    if not name:
        return cluster_rows(context.settings)
    if node_id(name, "Broker id") != context.node.node_id:
        raise InvalidRequestError(
            f"Unexpected broker id, expected {context.node.node_id} or empty string, but received {name}"
        )
    return broker_rows(context.settings, names)


def _logger_rows(context: Context, name: str) -> list[ConfigRow]:
    """No loggers: levels belong to Python's ``logging`` of the process, not to its clients."""
    _require(name, "Broker id must not be empty")
    if node_id(name, "Broker id") != context.node.node_id:
        raise InvalidRequestError(
            f"Unexpected broker id, expected {context.node.node_id} but received {name}"
        )
    return []


def _require(name: str, text: str) -> None:
    if not name:
        raise InvalidRequestError(text)


def _asked(rows: list[ConfigRow], names: frozenset[str]) -> list[ConfigRow]:
    """Those named; all of them when no name is given."""
    return [row for row in rows if row.name in names] if names else rows


def _described(row: ConfigRow, request: DescribeConfigsRequest) -> _Config:
    synonyms = row.synonyms if request.include_synonyms else ()
    return _Config(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=int(row.source),
        is_sensitive=row.is_sensitive,
        synonyms=[_Synonym(name=s.name, value=s.value, source=int(s.source)) for s in synonyms],
        config_type=int(row.type),
        documentation=row.documentation if request.include_documentation else None,
    )
