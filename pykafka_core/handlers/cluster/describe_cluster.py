"""DescribeCluster (60): KIP-700, KIP-919; ``AuthHelper.computeDescribeClusterResponse``."""

from pykafka_core.errors import (
    InvalidRequestError,
    KafkaError,
    MismatchedEndpointTypeError,
    UnsupportedEndpointTypeError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.metadata.image.image import Broker, Controller, Endpoint
from pykafka_core.protocol.messages import DescribeClusterRequest, DescribeClusterResponse
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS

ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2
VERSION_WITH_TYPES = 1
"""Earlier versions have no endpoint type in request and response."""
NOBODY = -1

CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
"""All operations of a cluster as bits: create, alter, describe, cluster action, describe and alter
configs, idempotent write. Without an authorizer every client may do all of them.
"""

_NAMES = {ENDPOINT_BROKERS: "BROKER", ENDPOINT_CONTROLLERS: "CONTROLLER"}
_Node = DescribeClusterResponse.DescribeClusterBroker


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """List the brokers with this listener; at a controller listener, list the controllers."""
    here = ENDPOINT_BROKERS
    if context.caller.listener.upper() in context.settings.start.controller_names:
        here = ENDPOINT_CONTROLLERS
    if request.endpoint_type != here:
        return _wrong_endpoint(context, request.endpoint_type, here)
    if here == ENDPOINT_BROKERS:
        nodes, controller_id = _brokers(context, request), context.node.node_id
    else:
        nodes, controller_id = _controllers(context), context.quorum.leader_id
        if controller_id not in (node.broker_id for node in nodes):
            controller_id = NOBODY  # the leader has not registered yet
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        endpoint_type=here,
        cluster_id=context.node.cluster_id,
        controller_id=controller_id,
        brokers=nodes,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NO_AUTHORIZED_OPERATIONS,
    )


def _brokers(context: Context, request: DescribeClusterRequest) -> list[_Node]:
    return [
        _Node(
            broker_id=broker.node_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for _, broker in sorted(context.image.brokers.items())
        if request.include_fenced_brokers or not broker.fenced
        for endpoint in _here(context, broker)
    ]


def _controllers(context: Context) -> list[_Node]:
    """Return the registered controllers (KIP-919), whether they run or not."""
    return [
        _Node(broker_id=controller.node_id, host=endpoint.host, port=endpoint.port, rack=None)
        for _, controller in sorted(context.image.controllers.items())
        for endpoint in _here(context, controller)
    ]


def _here(context: Context, node: Broker | Controller) -> list[Endpoint]:
    """Return the endpoint of a node's listener through which the request arrived."""
    return [at for at in node.endpoints if at.name == context.caller.listener][:1]


def _wrong_endpoint(context: Context, asked: int, here: int) -> DescribeClusterResponse:
    error: KafkaError
    if asked in _NAMES:
        error = MismatchedEndpointTypeError(
            f"The request was sent to an endpoint of type {_NAMES[here]}, "
            f"but we wanted an endpoint of type {_NAMES[asked]}"
        )
    else:
        error = UnsupportedEndpointTypeError(f"Unsupported endpoint type {asked}")
    is_old = context.caller.api_version < VERSION_WITH_TYPES
    return DescribeClusterResponse(
        error_code=InvalidRequestError.code if is_old else error.code,
        error_message=str(error),
        cluster_id="",
        controller_id=NOBODY,
    )
