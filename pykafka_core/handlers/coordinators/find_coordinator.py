"""FindCoordinator (10): where groups would be coordinated, though no coordinator is built yet.

The node of a cluster of one coordinates every group, and ApiVersions offers no API of groups. A client that is
answered with this node therefore reports at once that groups are not supported. COORDINATOR_NOT_AVAILABLE would make it
ask again for as long as it lives, and librdkafka's `close` wait for session.timeout.ms to commit. That is still the
answer for transactional ids, as InitProducerId gives it too, and for share groups.
"""

import re
from typing import NamedTuple

from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    KafkaError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Slices, collect
from pykafka_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka_core.types import id_bytes

BATCHED_VERSION = 4
"""From here on a request names many keys."""
GROUP, TRANSACTION, SHARE_GROUP = range(3)
SHARE_VERSION = 6
"""Since then share groups have coordinators."""
_PARTITION = re.compile(r"[+-]?[0-9]{1,10}\Z")
_MISSING = {
    GROUP: (
        "consumer groups are not built yet: assign partitions, without a group id or, in librdkafka, with "
        "enable.auto.commit=false and an offset for each partition"
    ),
    TRANSACTION: "transactions are not built yet: leave out transactional.id",
    SHARE_GROUP: "share groups are not built yet",
}


class _Coordinator(NamedTuple):
    node_id: int = -1
    host: str = ""
    port: int = -1
    error: KafkaError | None = None


def handle(context: Context, request: FindCoordinatorRequest) -> Slices[FindCoordinatorResponse]:
    """Answer with this node for groups, else with COORDINATOR_NOT_AVAILABLE; warn that nothing is coordinated."""
    version, kind = context.caller.api_version, request.key_type
    if kind in _MISSING:
        client = f"client {context.caller.client_id!r} at {context.caller.client_host}"
        context.warn(
            f"coordinator {kind}", f"{client} asks for a coordinator, and {_MISSING[kind]}"
        )
    yield
    if version < BATCHED_VERSION:
        found = _coordinator(context, kind, request.key)
        return FindCoordinatorResponse(
            error_code=found.error.code if found.error else 0,
            error_message=str(found.error) if found.error else None,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    coordinators = yield from collect(
        FindCoordinatorResponse.Coordinator(
            key=key,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
            error_code=found.error.code if found.error else 0,
            error_message=str(found.error) if found.error else None,
        )
        for key in request.coordinator_keys
        for found in [_coordinator(context, kind, key)]
    )
    return FindCoordinatorResponse(coordinators=coordinators)


def _coordinator(context: Context, kind: int, key: str) -> _Coordinator:
    if kind not in _MISSING:
        return _Coordinator(error=InvalidRequestError(f"Unknown key type {kind}"))
    if kind == SHARE_GROUP and (
        context.caller.api_version < SHARE_VERSION or not _is_share_key(key)
    ):
        return _Coordinator(
            error=InvalidRequestError("A share group's key is groupId:topicId:partition")
        )
    if kind == GROUP:
        for endpoint in context.image.brokers[context.node.node_id].endpoints:
            if endpoint.name == context.caller.listener:
                return _Coordinator(context.node.node_id, endpoint.host, endpoint.port)
    return _Coordinator(error=CoordinatorNotAvailableError())


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
