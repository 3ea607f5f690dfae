"""ControllerRegistration (70): KIP-919; ``ClusterControlManager.registerController`` in Kafka."""

from pykafka_core.errors import error_of
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Propose
from pykafka_core.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    RegisterControllerRecord,
)


def handle(_context: Context, request: ControllerRegistrationRequest) -> Propose:
    """Register a process of a controller; one of the same id before it is forgotten."""
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
    )
    return Propose([record], _response)


def _response(code: int) -> ControllerRegistrationResponse:
    text = str(error_of(code)()) if code else None
    return ControllerRegistrationResponse(error_code=code, error_message=text)
