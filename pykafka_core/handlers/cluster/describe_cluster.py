"""DescribeCluster (60): KIP-700, KIP-919; ``AuthHelper.computeDescribeClusterResponse``."""

from pykafka_core.errors import (
    KafkaError,
    MismatchedEndpointTypeError,
    UnsupportedEndpointTypeError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.metadata.image.image import Broker
from pykafka_core.protocol.messages import DescribeClusterRequest, DescribeClusterResponse
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS

ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2

CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
"""Every operation a cluster knows, as bits: create, alter, describe, cluster action, describe and
alter configs, idempotent write. Without an authorizer everybody may do them all."""


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Name the brokers that have the listener by which the question came."""
    if request.endpoint_type != ENDPOINT_BROKERS:
        return _wrong_endpoint(request.endpoint_type)
    brokers = [
        described
        for node in sorted(context.image.brokers)
        if (described := _describe(context, context.image.brokers[node]))
        and (request.include_fenced_brokers or not described.is_fenced)
    ]
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=context.node.cluster_id,
        controller_id=context.node.node_id,
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NO_AUTHORIZED_OPERATIONS,
    )


def _describe(
    context: Context, broker: Broker
) -> DescribeClusterResponse.DescribeClusterBroker | None:
    for endpoint in broker.endpoints:
        if endpoint.name == context.caller.listener:
            return DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.node_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
    return None


def _wrong_endpoint(endpoint_type: int) -> DescribeClusterResponse:
    error: KafkaError
    if endpoint_type == ENDPOINT_CONTROLLERS:
        error = MismatchedEndpointTypeError(
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER"
        )
    else:
        error = UnsupportedEndpointTypeError(f"Unsupported endpoint type {endpoint_type}")
    return DescribeClusterResponse(
        error_code=error.code, error_message=str(error), cluster_id="", controller_id=-1
    )
