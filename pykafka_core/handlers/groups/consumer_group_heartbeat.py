"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, keeps its session alive, gets
its assignment, and leaves.
"""

from functools import partial

from pykafka_core._core import Pattern
from pykafka_core.coordinator.group.consumer.heartbeat import consumer_heartbeat
from pykafka_core.coordinator.group.consumer.heartbeat_request import NO_TIMEOUT, Heartbeat
from pykafka_core.coordinator.group.consumer.leave import consumer_leave
from pykafka_core.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    assignment_of,
)
from pykafka_core.coordinator.group.settings import ConsumerGroupSettings
from pykafka_core.errors import (
    InvalidRegularExpressionError,
    InvalidRequestError,
    KafkaError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate
from pykafka_core.handlers.groups.consumer_topics import ImageTopics
from pykafka_core.handlers.outcome import ShardCalls
from pykafka_core.metadata.image.features import GROUP_VERSION
from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    Message,
)
from pykafka_core.types import RESOURCE_GROUP

MEMBER_ID_VERSION = 1
"""From this version on clients create their member ids (KIP-1082)."""
NAMES_MAX = 2_000
"""Maximum number of topics that one member may subscribe to or own, so that one turn can handle
them. Kafka has no limit."""
OWNED_MAX = 200_000
"""Maximum number of owned partitions in a heartbeat."""


def handle(context: Context, request: ConsumerGroupHeartbeatRequest) -> ShardCalls | Message:
    """Respond when the changes are committed; a heartbeat never waits for other members."""
    own = context.image.configs.of(RESOURCE_GROUP, request.group_id)
    settings = ConsumerGroupSettings.of(context.settings, own)
    try:
        if not context.image.features.get(GROUP_VERSION):
            raise UnsupportedVersionError
        _check(request, context.caller.api_version, settings)
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    view = ImageTopics(context.image.topics, context.image.offset)
    if request.member_epoch < JOIN_EPOCH:
        run = partial(consumer_leave, request, view)
    else:
        run = partial(consumer_heartbeat, _beat(context, request, settings), view)
    return coordinate(context, request.group_id, run, _refused)


def _refused(code: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)


def _check(
    request: ConsumerGroupHeartbeatRequest, api_version: int, settings: ConsumerGroupSettings
) -> None:
    """Check a request, like
    ``GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid``.

    Raises:
        KafkaError: The request is invalid.
    """
    epoch = request.member_epoch
    makes_id = api_version >= MEMBER_ID_VERSION
    if makes_id or epoch > JOIN_EPOCH or epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        _refuse(_is_blank(request.member_id), "MemberId can't be empty.")
    _refuse(_is_blank(request.group_id), "GroupId can't be empty.")
    _refuse(_is_blank(request.instance_id), "InstanceId can't be empty.")
    _refuse(_is_blank(request.rack_id), "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == LEAVE_STATIC_EPOCH:
        _refuse(request.instance_id is None, "InstanceId can't be null.")
    _refuse(epoch < LEAVE_STATIC_EPOCH, "MemberEpoch is invalid.")
    _check_size(request)
    _check_known(request, settings)


def _is_blank(text: str | None) -> bool:
    """Return whether a text is empty after Java's ``String.trim``, which removes characters up to
    the space.
    """
    return text is not None and all(character <= " " for character in text)


def _check_size(request: ConsumerGroupHeartbeatRequest) -> None:
    names, owned = request.subscribed_topic_names or (), request.topic_partitions or ()
    _refuse(
        max(len(names), len(owned)) > NAMES_MAX,
        f"A member can have {NAMES_MAX} topics.",
    )
    _refuse(
        sum(len(row.partitions) for row in owned) > OWNED_MAX,
        f"A member can own {OWNED_MAX} partitions.",
    )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _refuse(
        request.rebalance_timeout_ms == NO_TIMEOUT,
        "RebalanceTimeoutMs must be provided in first request.",
    )
    _refuse(
        request.topic_partitions is None or bool(request.topic_partitions),
        "TopicPartitions must be empty when (re-)joining.",
    )
    _refuse(
        request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _check_known(request: ConsumerGroupHeartbeatRequest, settings: ConsumerGroupSettings) -> None:
    asked = request.server_assignor
    if asked is not None and asked not in settings.assignors:
        raise UnsupportedAssignorError(
            f"ServerAssignor {asked} is not supported."
            f" Supported assignors: {', '.join(settings.assignors)}."
        )
    if request.subscribed_topic_regex:
        _check_regex(request.subscribed_topic_regex)


def _check_regex(regex: str) -> None:
    try:
        Pattern(regex)
    except ValueError as error:
        raise InvalidRegularExpressionError(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        ) from None


def _refuse(is_wrong: bool, message: str) -> None:
    if is_wrong:
        raise InvalidRequestError(message)


def _beat(
    context: Context, request: ConsumerGroupHeartbeatRequest, settings: ConsumerGroupSettings
) -> Heartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=None if names is None else frozenset(names),
        topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None
        if owned is None
        else assignment_of((row.topic_id, row.partitions) for row in owned),
        client_id=context.caller.client_id,
        client_host=f"/{context.caller.client_host}",  # as Java prints an address without a name
        session_timeout_ms=settings.session_timeout_ms,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
