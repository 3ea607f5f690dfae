"""FindCoordinator (10): there is none yet, which clients take as a reason to wait."""

import re

from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    KafkaError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka_core.types import id_bytes

BATCHED_VERSION = 4
"""From here on a request names many keys."""
KEY_TYPES = range(3)
"""Group, transaction, share group."""
SHARE_GROUP = 2
SHARE_VERSION = 6
"""Since then share groups have coordinators."""
_PARTITION = re.compile(r"[+-]?[0-9]{1,10}\Z")


def handle(context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Answer COORDINATOR_NOT_AVAILABLE for every key that could have a coordinator."""
    version, kind = context.api_version, request.key_type
    if version < BATCHED_VERSION:
        error = _error(kind, request.key, version)
        return FindCoordinatorResponse(
            error_code=error.code, error_message=str(error), node_id=-1, host="", port=-1
        )
    coordinators = [
        FindCoordinatorResponse.Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=str(error)
        )
        for key in request.coordinator_keys
        for error in [_error(kind, key, version)]
    ]
    return FindCoordinatorResponse(coordinators=coordinators)


def _error(kind: int, key: str, version: int) -> KafkaError:
    if kind not in KEY_TYPES:
        return InvalidRequestError(f"Unknown key type {kind}")
    if kind == SHARE_GROUP and (version < SHARE_VERSION or not _is_share_key(key)):
        return InvalidRequestError("A share group's key is groupId:topicId:partition")
    return CoordinatorNotAvailableError()


def _is_share_key(key: str) -> bool:
    """As Kafka's ``SharePartitionKey.validate``."""
    parts = key.split(":")
    if len(parts) != 3 or not parts[0].strip() or not _PARTITION.match(parts[2]):
        return False
    try:
        id_bytes(parts[1])
    except ValueError:
        return False
    return -(2**31) <= int(parts[2]) < 2**31
