"""FindCoordinator (10): there is none yet, which clients take as a reason to wait."""

from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    KafkaError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_VERSION = 4
"""From here on a request names many keys."""
KEY_TYPES = range(3)
"""Group, transaction, share group."""


def handle(context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Answer COORDINATOR_NOT_AVAILABLE for every key."""
    error: KafkaError = CoordinatorNotAvailableError()
    if request.key_type not in KEY_TYPES:
        error = InvalidRequestError(f"Unknown key type {request.key_type}")
    if context.api_version < BATCHED_VERSION:
        return FindCoordinatorResponse(
            error_code=error.code, error_message=str(error), node_id=-1, host="", port=-1
        )
    coordinators = [
        FindCoordinatorResponse.Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=str(error)
        )
        for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=coordinators)
