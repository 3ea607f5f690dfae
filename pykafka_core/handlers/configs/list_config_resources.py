"""ListConfigResources (74): KIP-1142; version 0 was ListClientMetricsResources."""

from pykafka_core.errors import UnsupportedVersionError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work, collect
from pykafka_core.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse
from pykafka_core.types import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)

_KINDS = (
    RESOURCE_GROUP,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
)


def handle(
    context: Context, request: ListConfigResourcesRequest
) -> Work[ListConfigResourcesResponse]:
    """List the resources: every topic and broker, and groups and subscriptions with configs."""
    asked = request.resource_types if context.caller.api_version > 0 else [RESOURCE_CLIENT_METRICS]
    yield
    kinds = set(asked or _KINDS)
    if not kinds <= set(_KINDS):
        return ListConfigResourcesResponse(
            error_code=UnsupportedVersionError.code, config_resources=[]
        )
    resources = yield from collect(
        ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
        for kind in _KINDS
        if kind in kinds
        for name in _names(context, kind)
    )
    return ListConfigResourcesResponse(config_resources=resources)


def _names(context: Context, kind: int) -> list[str]:
    if kind == RESOURCE_TOPIC:
        return sorted(context.image.topics.by_name)
    if kind in (RESOURCE_BROKER, RESOURCE_BROKER_LOGGER):
        return [str(node) for node in sorted(context.image.brokers)]
    return context.image.configs.names(kind)
