"""FindCoordinator (10): returns the node that coordinates a key. The first request about a kind of
keys creates the internal topic.

The response is sent when the topic exists, so that the client need not retry. For share groups it
is COORDINATOR_NOT_AVAILABLE, because their coordinator is not implemented.
"""

import re
from typing import NamedTuple

from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    KafkaError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.internal_topics import InternalTopic, coordinators_topic
from pykafka_core.handlers.outcome import MetadataWrite, Work, collect
from pykafka_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC, id_bytes

BATCHED_VERSION = 4
"""From this version on a request has many keys."""
GROUP, TRANSACTION, SHARE_GROUP = range(3)
SHARE_VERSION = 6
"""From this version on share groups have coordinators."""
_PARTITION = re.compile(r"[+-]?[0-9]{1,10}\Z")
_KINDS = (GROUP, TRANSACTION, SHARE_GROUP)
_TOPICS = {GROUP: GROUP_TOPIC, TRANSACTION: TRANSACTION_TOPIC}


class _Coordinator(NamedTuple):
    node_id: int = -1
    host: str = ""
    port: int = -1
    error: KafkaError | None = None

    @property
    def error_code(self) -> int:
        return self.error.code if self.error else 0

    @property
    def error_message(self) -> str | None:
        return str(self.error) if self.error else None


def handle(
    context: Context, request: FindCoordinatorRequest
) -> Work[FindCoordinatorResponse | MetadataWrite]:
    """Respond at once if the coordinators' topic exists; else create it first."""
    if request.key_type == SHARE_GROUP:
        client = f"client {context.caller.client_id!r} at {context.caller.client_host}"
        context.warn("share groups", f"{client} uses share groups, which are not built")
    name = _TOPICS.get(request.key_type)
    if name is None:
        return (yield from _response(context, request, None))
    try:
        topic = yield from coordinators_topic(context, name)
    except InvalidReplicationFactorError as error:
        context.warn(name, str(error))
        return (yield from _response(context, request, None))
    if not topic.records:
        return (yield from _response(context, request, topic))
    return MetadataWrite(
        topic.records, lambda code: _response(context, request, None if code else topic)
    )


def _response(
    context: Context, request: FindCoordinatorRequest, topic: InternalTopic | None
) -> Work[FindCoordinatorResponse]:
    yield
    kind = request.key_type
    if context.caller.api_version < BATCHED_VERSION:
        found = _coordinator(context, kind, request.key, topic)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message,
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
            error_code=found.error_code,
            error_message=found.error_message,
        )
        for key in request.coordinator_keys
        for found in [_coordinator(context, kind, key, topic)]
    )
    return FindCoordinatorResponse(coordinators=coordinators)


def _coordinator(
    context: Context, kind: int, key: str, topic: InternalTopic | None
) -> _Coordinator:
    if kind not in _KINDS:
        return _Coordinator(error=InvalidRequestError(f"Unknown key type {kind}"))
    if kind == SHARE_GROUP and (
        context.caller.api_version < SHARE_VERSION or not _is_share_key(key)
    ):
        return _Coordinator(
            error=InvalidRequestError("A share group's key is groupId:topicId:partition")
        )
    node = context.image.brokers.get(topic.leader(key)) if topic else None
    if node is not None:
        for endpoint in node.endpoints:
            if endpoint.name == context.caller.listener:
                return _Coordinator(node.node_id, endpoint.host, endpoint.port)
    return _Coordinator(error=CoordinatorNotAvailableError())


def _is_share_key(key: str) -> bool:
    """Return whether a key is valid, like Kafka's ``SharePartitionKey.validate``."""
    parts = key.split(":")
    if len(parts) != 3 or not parts[0].strip() or not _PARTITION.match(parts[2]):
        return False
    try:
        id_bytes(parts[1])
    except ValueError:
        return False
    return -(2**31) <= int(parts[2]) < 2**31
