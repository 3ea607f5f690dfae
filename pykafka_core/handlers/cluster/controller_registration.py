"""ControllerRegistration (70): KIP-919; ``ClusterControlManager.registerController`` in Kafka."""

from pykafka_core.errors import error_of
from pykafka_core.handlers.cluster.broker_records import endpoints_as, features_as
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
        end_points=endpoints_as(RegisterControllerRecord.ControllerEndpoint, request.listeners),
        features=features_as(RegisterControllerRecord.ControllerFeature, request.features),
    )
    return Propose([record], _response)


def _response(code: int) -> ControllerRegistrationResponse:
    text = str(error_of(code)()) if code else None
    return ControllerRegistrationResponse(error_code=code, error_message=text)
