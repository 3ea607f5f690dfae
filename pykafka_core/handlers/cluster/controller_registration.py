"""ControllerRegistration (70): KIP-919; ``ClusterControlManager.registerController`` in Kafka."""

from pykafka_core.errors import (
    InvalidRequestError,
    KafkaError,
    UnsupportedVersionError,
    error_of,
)
from pykafka_core.handlers.cluster.broker_records import (
    check_listener_count,
    endpoints_as,
    features_as,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    RegisterControllerRecord,
)

LEVEL_MIN = 15
"""3.7-IV0, the first ``metadata.version`` with registrations of controllers."""


def handle(
    context: Context, request: ControllerRegistrationRequest
) -> MetadataWrite | ControllerRegistrationResponse:
    """Register a process of a controller; it replaces an earlier one of the same id."""
    try:
        _check(context, request)
    except KafkaError as error:
        return ControllerRegistrationResponse(error_code=error.code, error_message=str(error))
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=endpoints_as(RegisterControllerRecord.ControllerEndpoint, request.listeners),
        features=features_as(RegisterControllerRecord.ControllerFeature, request.features),
    )
    return MetadataWrite([record], _response)


def _check(context: Context, request: ControllerRegistrationRequest) -> None:
    """Refuse listeners that clients cannot use; clients receive them.

    Raises:
        KafkaError: The registration is refused; the text states the reason.
    """
    if context.image.features.get(METADATA_VERSION, 0) < LEVEL_MIN:
        raise UnsupportedVersionError(
            "The current MetadataVersion is too old to support controller registrations."
        )
    if request.controller_id < 0:
        raise InvalidRequestError(f"{request.controller_id} is not a controller id")
    check_listener_count(request.listeners)
    for listener in request.listeners:
        if not listener.host or not listener.host.isprintable() or not listener.port:
            raise InvalidRequestError(f"Listener {listener.name!r} is at no address")


def _response(code: int) -> ControllerRegistrationResponse:
    text = str(error_of(code)()) if code else None
    return ControllerRegistrationResponse(error_code=code, error_message=text)
