"""UnregisterController (94): ``ClusterControlManager.unregisterController`` in Kafka 4.4."""

from pykafka_core.errors import (
    ControllerIdNotRegisteredError,
    InvalidRequestError,
    KafkaError,
    UnsupportedVersionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite
from pykafka_core.metadata.image.features import CONTROLLER_REMOVAL_LEVEL, METADATA_VERSION
from pykafka_core.protocol.messages import (
    UnregisterControllerRecord,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)


def handle(
    context: Context, request: UnregisterControllerRequest
) -> MetadataWrite | UnregisterControllerResponse:
    """Remove a controller that left the cluster; a running one registers again."""
    try:
        _check(context, request.controller_id)
    except KafkaError as error:
        return _response(error)
    record = UnregisterControllerRecord(controller_id=request.controller_id)
    return MetadataWrite([record], lambda code: _response(error_of(code)() if code else None))


def _check(context: Context, controller_id: int) -> None:
    if controller_id == context.node.node_id:
        raise InvalidRequestError("Controller cannot unregister itself while it is active.")
    if context.image.features.get(METADATA_VERSION, 0) < CONTROLLER_REMOVAL_LEVEL:
        raise UnsupportedVersionError(
            "The current MetadataVersion is too old to support controller unregistration."
        )
    if controller_id not in context.image.controllers:
        raise ControllerIdNotRegisteredError(
            f"Controller ID {controller_id} is not currently registered."
        )


def _response(error: KafkaError | None) -> UnregisterControllerResponse:
    if error is None:
        return UnregisterControllerResponse(error_message=None)
    return UnregisterControllerResponse(error_code=error.code, error_message=str(error))
