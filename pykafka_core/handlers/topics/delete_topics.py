"""DeleteTopics (20): contract/kafka.md#40; ``ControllerApis.deleteTopics`` in Kafka."""

from collections import Counter
from typing import NamedTuple

from pykafka_core.errors import (
    InvalidRequestError,
    KafkaError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work, collect
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    RemoveTopicRecord,
)
from pykafka_core.types import ZERO_ID

VERSION_WITH_DELETION_DISABLED = 3
"""Older versions do not have TOPIC_DELETION_DISABLED and get INVALID_REQUEST."""

_Result = DeleteTopicsResponse.DeletableTopicResult


class _RequestedTopic(NamedTuple):
    """One topic of the request, by name or, if ``name`` is None, by id."""

    name: str | None
    topic_id: bytes


def handle(context: Context, request: DeleteTopicsRequest) -> Work[MetadataWrite]:
    """Delete the existing topics; their data is deleted after the commit of the records."""
    asked = yield from collect(
        _RequestedTopic(topic.name, topic.topic_id) for topic in request.topics
    )
    asked += yield from collect(_RequestedTopic(name, ZERO_ID) for name in request.topic_names)
    if not context.settings.boolean("delete.topic.enable"):
        disabled = _disabled(context.caller.api_version)
        refused = yield from collect(_failed(topic, disabled) for topic in asked)
        return MetadataWrite([], lambda _: _response(refused))
    results: list[_Result] = []
    doomed: list[bytes] = []
    by_id = {topic.topic_id for topic in asked if topic.name is None}
    counts: Counter[_RequestedTopic] = Counter()
    for topic in asked:
        counts[topic] += 1
        yield
    for topic in counts:
        yield
        try:
            found = _find(context, topic, counts[topic])
            if topic.name is not None and found.topic_id in by_id:
                error = InvalidRequestError(
                    "The provided topic name maps to an ID that was already supplied."
                )
                results.append(_failed(_RequestedTopic(found.name, found.topic_id), error))
                continue
            if topic.name is None and _RequestedTopic(found.name, ZERO_ID) in counts:
                continue  # the row of its name has the error
            doomed.append(found.topic_id)
            results.append(_Result(name=found.name, topic_id=found.topic_id))
        except KafkaError as refusal:
            results.append(_failed(topic, refusal))

    def reply(code: int) -> Work[DeleteTopicsResponse]:
        for result in results:
            yield
            if code and not result.error_code:
                result.error_code = code
                result.error_message = str(error_of(code)())
        return _response(results)

    records = yield from collect(RemoveTopicRecord(topic_id=topic_id) for topic_id in doomed)
    return MetadataWrite(records, reply)


def _find(context: Context, topic: _RequestedTopic, count: int) -> Topic:
    topics = context.image.topics
    if topic.name is None:
        if topic.topic_id == ZERO_ID:
            raise InvalidRequestError("Neither topic name nor id were specified.")
        if count > 1:
            raise InvalidRequestError("Duplicate topic id.")
        if topic.topic_id not in topics.by_id:
            raise UnknownTopicIdError
        return topics.by_id[topic.topic_id]
    if topic.topic_id != ZERO_ID:
        raise InvalidRequestError("You may not specify both topic name and topic id.")
    if count > 1:
        raise InvalidRequestError("Duplicate topic name.")
    if topic.name not in topics.by_name:
        raise UnknownTopicOrPartitionError
    return topics.by_name[topic.name]


def _disabled(version: int) -> KafkaError:
    if version < VERSION_WITH_DELETION_DISABLED:
        return InvalidRequestError("Topic deletion is disabled.")
    return TopicDeletionDisabledError()


def _failed(topic: _RequestedTopic, error: KafkaError) -> _Result:
    return _Result(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=error.code,
        error_message=str(error),
    )


def _response(results: list[_Result]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=results)
