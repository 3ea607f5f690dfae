"""DescribeConfigs (32): contract/kafka.md#38; ``ConfigHelper`` in Kafka."""

from collections.abc import Collection, Iterable, Mapping

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
from pykafka_core.handlers.outcome import Work, collect
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


def handle(context: Context, request: DescribeConfigsRequest) -> Work[DescribeConfigsResponse]:
    """Describe each resource separately; an error of one does not affect the others.

    The response has one result for a resource that is named several times, with all requested
    configs: clients identify a result by its resource, and a short request must not get a long
    response.
    """
    results = []
    described = _Described(context, request)
    merged = yield from _merged(request)
    for resource, names in merged.items():
        yield
        result = _Result(resource_type=resource.kind, resource_name=resource.name)
        try:
            result.configs = described.all_of(resource, names)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _merged(request: DescribeConfigsRequest) -> Work[dict[ConfigResource, frozenset[str]]]:
    """Return the requested configs of each resource; an empty set means all."""
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


class _Described:
    """Descriptions of configs, which must not be changed.

    Equal configs of several resources are described once per request, and so are inherited ones. So
    the cost for 8,000 topics does not grow with the number of their configs.
    """

    def __init__(self, context: Context, request: DescribeConfigsRequest) -> None:
        self._context = context
        self._request = request
        self._inherited: dict[int, dict[str, _Config]] = {}
        self._own: dict[tuple[int, str, str], list[_Config]] = {}

    def all_of(self, resource: ConfigResource, names: frozenset[str]) -> list[_Config]:
        """Return the named configs of one resource, or all if ``names`` is empty.

        Raises:
            KafkaError: The resource cannot be described.
        """
        kind, name = resource.kind, resource.name
        if kind not in _WITH_OWN_SETTINGS:
            return _of_names(self._made(_broker_rows_of(self._context, resource, names)), names)
        _check(self._context, resource)
        own = self._context.image.configs.of(kind, name)
        described = self._inherited_of(kind)
        for setting, value in own.items():
            described |= {config.name: config for config in self._own_one(kind, setting, value)}
        return _of_names(described.values(), names)

    def _inherited_of(self, kind: int) -> dict[str, _Config]:
        """Return a separate copy for each resource."""
        if kind not in self._inherited:
            rows = _rows(self._context, kind, {}, ())
            self._inherited[kind] = {config.name: config for config in self._made(rows)}
        return self._inherited[kind].copy()

    def _own_one(self, kind: int, name: str, value: str) -> list[_Config]:
        """Return the config in a list; empty for a name that this version does not have."""
        key = kind, name, value
        if key not in self._own:
            self._own[key] = self._made(_rows(self._context, kind, {name: value}, (name,)))
        return self._own[key]

    def _made(self, rows: Iterable[ConfigRow]) -> list[_Config]:
        return [_described(row, self._request) for row in rows]


_WITH_OWN_SETTINGS = frozenset({RESOURCE_TOPIC, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP})
"""The kinds with many resources, each with its own configs besides inherited ones."""


def _of_names(configs: Iterable[_Config], names: frozenset[str]) -> list[_Config]:
    """Return the named configs, or all if no name is given."""
    return [config for config in configs if not names or config.name in names]


def _check(context: Context, resource: ConfigResource) -> None:
    kind, name = resource.kind, resource.name
    if kind == RESOURCE_CLIENT_METRICS:
        _require(name, "Client metrics subscription name must not be empty")
    elif kind == RESOURCE_GROUP:
        _require(name, "Group name must not be empty")
    else:
        check_topic_name(name)
        if name not in context.image.topics.by_name:
            raise UnknownTopicOrPartitionError


def _rows(
    context: Context, kind: int, own: Mapping[str, str], names: Collection[str]
) -> list[ConfigRow]:
    """Return the rows of a resource with these configs of the resource itself."""
    if kind == RESOURCE_CLIENT_METRICS:
        return client_metrics_rows(own, names)
    if kind == RESOURCE_GROUP:
        return group_rows(own, context.settings, names)
    return topic_rows(own, context.settings, names)


def _broker_rows_of(
    context: Context, resource: ConfigResource, names: frozenset[str]
) -> list[ConfigRow]:
    kind, name = resource.kind, resource.name
    if kind == RESOURCE_BROKER:
        return _broker_rows(context, name, names)
    if kind == RESOURCE_BROKER_LOGGER:
        return _logger_rows(context, name)
    raise InvalidRequestError(f"Unsupported resource type: {kind}")


def _broker_rows(context: Context, name: str, names: frozenset[str]) -> list[ConfigRow]:
    if not name:
        return cluster_rows(context.settings)
    if node_id(name, "Broker id") != context.node.node_id:
        raise InvalidRequestError(
            f"Unexpected broker id, expected {context.node.node_id} or empty string, but received {name}"
        )
    return broker_rows(context.settings, names)


def _logger_rows(context: Context, name: str) -> list[ConfigRow]:
    """Return no loggers; the process sets its levels with Python's ``logging``."""
    _require(name, "Broker id must not be empty")
    if node_id(name, "Broker id") != context.node.node_id:
        raise InvalidRequestError(
            f"Unexpected broker id, expected {context.node.node_id} but received {name}"
        )
    return []


def _require(name: str, text: str) -> None:
    if not name:
        raise InvalidRequestError(text)


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
